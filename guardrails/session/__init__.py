"""
The front door of a running agent: it locks, waits, tells the time, runs tools.

`Session` is what a user holds. It is made of two parts: its `ledger` (the state behind a store, the clock, the chain, the
records, what was used and what ended it) and its `calls` (their tools; decided, answered by a person, settled). A host's
loop and a child of the session are copies with parts of their own.

A call goes one way (`steps`): decide, ask a person if it waits for one, run, read the result where it was made, close. The
way is a generator; each step that waits is yielded to a driver, which takes it at once or awaits it. So sync and async
cannot differ. Promised:

* A call that was admitted is settled whatever ends the tool or the reading of its result: a value, an exception, a time
  limit, a cancellation, Ctrl-C. What was answered and goes on all the same is settled when it ends, and recorded as late.
  Nothing is settled twice. A signal that strikes between two lines of the library itself leaves the call open until it
  expires, and it stays charged.
* The tool's exceptions never come out of `call`; cancellation and Ctrl-C do. Exceptions that a host names by `scoped` are
  its control flow: the call is suspended, raised on, and taken up by the same call made again, in any process.
* A call that is claimed runs once. Whoever loses a claim to a cancellation gives it back.
* A killed process leaves its call open, until it expires. If it is not to be made twice nobody runs it again by
  themselves: nobody knows whether it happened.
* A store that fails is a guard that fails: `on_error` decides. A tool that ran never loses its result by it.
* An event loop never waits for a file: what may wait for one is done in the one thread of its store, to its end.
* Whatever happens in a session is one event with the next number, recorded in that order.
* Model requests, turns and costs are events like calls. What a child reserves is its parent's until it is closed.
"""
