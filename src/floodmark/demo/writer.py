"""Simulates a user of the shop: writes transactions of all kinds until it is stopped."""

from __future__ import annotations

import random
import threading
from collections import Counter

import psycopg
from psycopg.rows import TupleRow
from psycopg.types.json import Jsonb

from floodmark.demo import shop

Conn = psycopg.Connection[TupleRow]

PAUSE_S = 0.004
ROLLBACK_SHARE = 0.05
ANY_CUSTOMER = "(SELECT id FROM customers ORDER BY random() LIMIT 1)"
ANY_ORDER = "(SELECT id FROM orders ORDER BY random() LIMIT 1)"
ANY_PRODUCT = "(SELECT sku FROM products ORDER BY random() LIMIT 1)"
STATUSES = ("new", "paid", "shipped", "delivered", "returned")


class ShopWriter(threading.Thread):
    """Writes to the shop with one connection until ``stop`` is called.

    Attributes:
        committed: how many transactions of each kind were committed.
        rolled_back: how many were rolled back.
        failure: what ended the thread too early, if anything did.
    """

    def __init__(self, conninfo: str, seed: int) -> None:
        super().__init__(name="shop-writer", daemon=True)
        self.committed: Counter[str] = Counter()
        self.rolled_back = 0
        self.failure: Exception | None = None
        self._conninfo = conninfo
        # Another seed than the shop was filled with, which would generate the same keys again.
        self._rng = random.Random(f"writer {seed}")
        self._stop_wanted = threading.Event()
        self._number = shop.CUSTOMERS

    def stop(self) -> None:
        """Finish the current transaction and wait until the thread has ended."""
        self._stop_wanted.set()
        self.join()

    def run(self) -> None:
        """Write one transaction after another."""
        weights = {
            self._order: 30,
            self._advance_orders: 20,
            self._change_customer: 15,
            self._register_customer: 10,
            self._cancel_order: 8,
            self._reprice: 6,
            self._rewrite_description: 5,
            self._rename_product: 3,
            self._delete_customer: 3,
        }
        actions, shares = list(weights), list(weights.values())
        try:
            with psycopg.connect(self._conninfo, autocommit=True) as conn:
                while not self._stop_wanted.wait(PAUSE_S):
                    action = self._rng.choices(actions, shares)[0]
                    undo = self._rng.random() < ROLLBACK_SHARE
                    with conn.transaction(force_rollback=undo):
                        action(conn)
                    if undo:
                        self.rolled_back += 1
                    else:
                        self.committed[action.__name__.strip("_")] += 1
        except psycopg.Error as exc:
            self.failure = exc

    def _order(self, conn: Conn) -> None:
        order = shop.new_uuid(self._rng)
        insert = f"INSERT INTO orders (id, customer_id, note) VALUES (%s, {ANY_CUSTOMER}, %s)"
        conn.execute(insert, (order, self._rng.choice(shop.NOTES)))
        sell = f"""
            WITH sold AS (
                UPDATE products SET stock = stock - %(quantity)s WHERE sku = {ANY_PRODUCT}
                RETURNING sku, price)
            INSERT INTO order_items SELECT %(order)s, %(line)s, sku, %(quantity)s, price FROM sold
        """
        for line in range(self._rng.randint(1, 4)):
            conn.execute(sell, {"order": order, "line": line, "quantity": self._rng.randint(1, 5)})

    def _advance_orders(self, conn: Conn) -> None:
        """Move a few orders on, each in a statement of its own and one of them twice."""
        rows = conn.execute("SELECT id FROM orders ORDER BY random() LIMIT 3").fetchall()
        for (order,) in [*rows, *rows[:1]]:
            conn.execute("UPDATE orders SET status = %s WHERE id = %s", (self._rng.choice(STATUSES), order))

    def _change_customer(self, conn: Conn) -> None:
        update = "UPDATE customers SET rating = %s, vip = NOT vip, profile = profile || %s"
        conn.execute(
            f"{update} WHERE id = {ANY_CUSTOMER}",
            (self._rng.random() * 5, Jsonb({"seen": self._rng.randrange(1000)})),
        )

    def _register_customer(self, conn: Conn) -> None:
        self._number += 1
        columns = "email, name, vip, birthday, rating, profile"
        values = shop.customer(self._rng, self._number)
        conn.execute(f"INSERT INTO customers ({columns}) VALUES (%s, %s, %s, %s, %s, %s)", values)

    def _cancel_order(self, conn: Conn) -> None:
        conn.execute(f"DELETE FROM orders WHERE id = {ANY_ORDER}")

    def _reprice(self, conn: Conn) -> None:
        update = "UPDATE products SET price = round(price * %s::numeric, 2), updated_at = clock_timestamp()"
        conn.execute(f"{update} WHERE random() < 0.1", (self._rng.choice(("0.9", "1.1")),))

    def _rewrite_description(self, conn: Conn) -> None:
        update = f"UPDATE products SET description = %s WHERE sku = {ANY_PRODUCT}"
        conn.execute(update, (shop.description(self._rng),))

    def _rename_product(self, conn: Conn) -> None:
        """Change a key, which the order items follow."""
        # Set the large text too: if the log left it out of the row with the new key, no event of the key would have it.
        update = f"UPDATE products SET sku = %s, description = %s WHERE sku = {ANY_PRODUCT}"
        conn.execute(update, (f"SKU-{self._rng.getrandbits(40):010x}", shop.description(self._rng)))

    def _delete_customer(self, conn: Conn) -> None:
        conn.execute(f"DELETE FROM customers WHERE id = {ANY_CUSTOMER}")
