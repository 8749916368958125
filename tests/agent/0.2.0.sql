DROP TABLE items;
CREATE TABLE conversation_tables (version INTEGER NOT NULL);
CREATE TABLE conversations (id INTEGER PRIMARY KEY, name TEXT, wire TEXT, made_ms INTEGER, settings TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY, conversation INTEGER, n INTEGER, at_ms INTEGER, item TEXT);
INSERT INTO conversations VALUES (7, 's', 'responses', 5, '{"model": "m"}');
INSERT INTO messages VALUES (1, 7, 1, 6, '{"role":"user","n":1.00}'), (2, 7, 2, 9, '{}');
