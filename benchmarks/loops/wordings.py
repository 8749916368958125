"""
One question in many words, in several alphabets, and names for things of which there are many.
"""

from typing import Final


QUERIES: Final = [
    "cheap hotel shibuya tokyo may",
    "cheap hotels shibuya tokyo may",
    "budget hotel shibuya tokyo may",
    "cheap hotel in shibuya tokyo may",
    "hotel shibuya tokyo cheap may 2026",
    "cheap shibuya tokyo hotel for may",
    "affordable hotel shibuya tokyo may",
    "cheap hotel near shibuya tokyo may",
    "cheap hotel shibuya tokyo in may",
    "the cheap hotel shibuya tokyo may",
    "cheap hotel shibuya station tokyo may",
    "cheap hotel shibuya tokyo may price",
]
RUSSIAN: Final = [
    "дешёвая гостиница москва центр май",
    "дешёвые гостиницы москва центр май",
    "дешёвая гостиница в москве центр май",
    "недорогая гостиница москва центр май",
    "дешёвая гостиница москва центр в мае",
    "дешёвая гостиница центр москвы май",
    "найти дешёвая гостиница москва центр май",
    "дешёвая гостиница москва центр май 2026",
    "дешёвая гостиница рядом москва центр май",
    "дешёвая гостиница москва самый центр май",
]
CHINESE: Final = [
    "东京涩谷便宜酒店五月预订",
    "东京涩谷便宜的酒店五月预订",
    "便宜酒店东京涩谷五月预订",
    "东京涩谷便宜酒店五月份预订",
    "东京涩谷附近便宜酒店五月预订",
    "东京涩谷便宜酒店五月预订价格",
    "请问东京涩谷便宜酒店五月预订",
    "东京涩谷最便宜酒店五月预订",
    "东京涩谷便宜酒店五月在线预订",
    "东京涩谷便宜酒店五月预订推荐",
]
ARABIC: Final = [
    "فندق رخيص في دبي مايو",
    "فندق رخيص دبي مايو",
    "فنادق رخيصة في دبي مايو",
    "فندق رخيص في دبي شهر مايو",
    "أرخص فندق في دبي مايو",
    "فندق في دبي رخيص مايو",
    "فندق رخيص في دبي خلال مايو",
    "حجز فندق رخيص في دبي مايو",
    "فندق رخيص وسط دبي مايو",
    "فندق رخيص قرب دبي مايو",
    "فندق رخيص دبي في مايو",
]
NAMES: Final = ["ada", "brno", "cusco", "delft", "essen", "fargo", "ghent", "hilo", "izmir", "jena", "kyoto", "lima"]
