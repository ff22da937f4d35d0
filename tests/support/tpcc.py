"""A workload like TPC-C's: orders, payments and deliveries, on a small scale.

Source: TPC Benchmark C, revision 5.11, clauses 1.3 (tables) and 2 (transactions). Columns that no transaction reads or
changes are left out, and so are the transactions that only read.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from tests.support.databases import Database, Mysql, Session
from tests.support.worker import Worker

WAREHOUSES, DISTRICTS, CUSTOMERS, ITEMS, ORDERS = 2, 10, 60, 400, 30
"""How many there are: of districts in each warehouse, of customers and first orders in each district."""
KEYS = {
    "warehouse": ("w_id",),
    "district": ("d_w_id", "d_id"),
    "customer": ("c_w_id", "c_d_id", "c_id"),
    "history": (),
    "new_order": ("no_w_id", "no_d_id", "no_o_id"),
    "orders": ("o_w_id", "o_d_id", "o_id"),
    "order_line": ("ol_w_id", "ol_d_id", "ol_o_id", "ol_number"),
    "item": ("i_id",),
    "stock": ("s_w_id", "s_i_id"),
}
_TABLES = {
    "warehouse": "w_id integer, w_name varchar(10), w_tax numeric(4,4), w_ytd numeric(12,2)",
    "district": (
        "d_w_id integer, d_id integer, d_name varchar(10), d_tax numeric(4,4), d_ytd numeric(12,2), d_next_o_id integer"
    ),
    "customer": (
        "c_w_id integer, c_d_id integer, c_id integer, c_last varchar(16), c_credit varchar(2), "
        "c_discount numeric(4,4), c_balance numeric(12,2), c_ytd_payment numeric(12,2), c_payment_cnt integer, "
        "c_delivery_cnt integer, c_data varchar(500)"
    ),
    "history": (
        "h_c_w_id integer, h_c_d_id integer, h_c_id integer, h_w_id integer, h_d_id integer, h_date {moment}, "
        "h_amount numeric(6,2), h_data varchar(24), h_number bigint"
    ),
    "new_order": "no_w_id integer, no_d_id integer, no_o_id integer",
    "orders": (
        "o_w_id integer, o_d_id integer, o_id integer, o_c_id integer, o_entry_d {moment}, o_carrier_id integer, "
        "o_ol_cnt integer, o_all_local integer"
    ),
    "order_line": (
        "ol_w_id integer, ol_d_id integer, ol_o_id integer, ol_number integer, ol_i_id integer, "
        "ol_supply_w_id integer, ol_delivery_d {moment}, ol_quantity integer, ol_amount numeric(6,2), "
        "ol_dist_info varchar(24)"
    ),
    "item": "i_id integer, i_name varchar(24), i_price numeric(5,2), i_data varchar(50)",
    "stock": (
        "s_w_id integer, s_i_id integer, s_quantity integer, s_ytd numeric(8,0), s_order_cnt integer, "
        "s_remote_cnt integer, s_data varchar(50)"
    ),
}


class Terminal(Worker):
    """One of TPC-C's terminals.

    Args:
        database: what is changed.
        seed: decides how.
        pause_s: the time between two transactions.
    """

    def __init__(self, database: Database, seed: int, pause_s: float = 0.02) -> None:
        super().__init__(database)
        self._random = random.Random(seed)
        self._pause_s = pause_s

    def create(self) -> None:
        """Create the tables with their first rows."""
        moment = "datetime(6)" if isinstance(self._database, Mysql) else "timestamp(6)"
        with self._database.session() as session:
            for table, columns in _TABLES.items():
                key = f", PRIMARY KEY ({', '.join(KEYS[table])})" if KEYS[table] else ""
                session.execute(f"CREATE TABLE {table} ({columns.format(moment=moment)}{key})")
            self._put(session, "item", ([n, f"item {n}", self._money(100), "data"] for n in range(1, ITEMS + 1)))
            for warehouse in range(1, WAREHOUSES + 1):
                self._put(session, "warehouse", [[warehouse, f"W{warehouse}", Decimal("0.0825"), 300000]])
                stock = ([warehouse, n, self._random.randint(10, 100), 0, 0, 0, "s" * 30] for n in range(1, ITEMS + 1))
                self._put(session, "stock", stock)
                for district in range(1, DISTRICTS + 1):
                    self._fill_district(session, warehouse, district)
            session.commit()

    def _fill_district(self, session: Session, warehouse: int, district: int) -> None:
        place = [warehouse, district]
        self._put(session, "district", [[*place, f"D{district}", Decimal("0.0500"), 30000, ORDERS + 1]])
        people = (
            [*place, n, f"LAST{n % 10}", self._random.choice(["GC", "BC"]), Decimal("0.1000"), -10, 10, 1, 0, "c" * 100]
            for n in range(1, CUSTOMERS + 1)
        )
        self._put(session, "customer", people)
        for number in range(1, ORDERS + 1):
            self._put(session, "orders", [[*place, number, number, self._now(), None, 2, 1]])
            lines = ([*place, number, n, n, warehouse, None, 5, self._money(99), "d" * 24] for n in (1, 2))
            self._put(session, "order_line", lines)
            self._put(session, "new_order", [[*place, number]])

    def _put(self, session: Session, table: str, rows: Any) -> None:
        for row in rows:
            session.execute(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})", row)

    def _transaction(self, session: Session) -> None:
        place = [self._random.randint(1, WAREHOUSES), self._random.randint(1, DISTRICTS)]
        pick = self._random.random()
        if pick < 0.47:
            self._order(session, *place)
        elif pick < 0.94:
            self._pay(session, *place)
        else:
            self._deliver(session, place[0])
        self.transactions += 1
        self._stop.wait(self._pause_s)

    def _order(self, session: Session, warehouse: int, district: int) -> None:
        place = [warehouse, district]
        session.execute("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = %s AND d_id = %s", place)
        ((following,),) = session.execute("SELECT d_next_o_id FROM district WHERE d_w_id = %s AND d_id = %s", place)
        # Stock is locked in one order by all terminals.
        items = sorted(self._random.sample(range(1, ITEMS + 1), self._random.randint(5, 15)))
        number, customer = following - 1, self._random.randint(1, CUSTOMERS)
        self._put(session, "orders", [[*place, number, customer, self._now(), None, len(items), 1]])
        self._put(session, "new_order", [[*place, number]])
        for line, item in enumerate(items, 1):
            quantity = self._random.randint(1, 10)
            session.execute(
                "UPDATE stock SET s_quantity = CASE WHEN s_quantity >= %s + 10 THEN s_quantity - %s "
                "ELSE s_quantity - %s + 91 END, s_ytd = s_ytd + %s, s_order_cnt = s_order_cnt + 1 "
                "WHERE s_w_id = %s AND s_i_id = %s",
                [quantity, quantity, quantity, quantity, warehouse, item],
            )
            row = [*place, number, line, item, warehouse, None, quantity, self._money(999), "d" * 24]
            self._put(session, "order_line", [row])
        # One of a hundred orders has an item that doesn't exist.
        (session.rollback if self._random.random() < 0.01 else session.commit)()

    def _pay(self, session: Session, warehouse: int, district: int) -> None:
        place, amount, customer = [warehouse, district], self._money(5000), self._random.randint(1, CUSTOMERS)
        session.execute("UPDATE warehouse SET w_ytd = w_ytd + %s WHERE w_id = %s", [amount, warehouse])
        session.execute("UPDATE district SET d_ytd = d_ytd + %s WHERE d_w_id = %s AND d_id = %s", [amount, *place])
        session.execute(
            "UPDATE customer SET c_balance = c_balance - %s, c_ytd_payment = c_ytd_payment + %s, "
            "c_payment_cnt = c_payment_cnt + 1, c_data = CASE WHEN c_credit = 'BC' THEN %s ELSE c_data END "
            "WHERE c_w_id = %s AND c_d_id = %s AND c_id = %s",
            [amount, amount, f"{customer} {amount} " * 20, *place, customer],
        )
        # The number, which isn't TPC-C's, tells rows apart.
        number = self._random.getrandbits(62)
        self._put(session, "history", [[*place, customer, *place, self._now(), amount, "W    D", number]])
        session.commit()

    def _deliver(self, session: Session, warehouse: int) -> None:
        for district in range(1, DISTRICTS + 1):
            place = [warehouse, district]
            found = session.execute("SELECT min(no_o_id) FROM new_order WHERE no_w_id = %s AND no_d_id = %s", place)
            ((number,),) = found
            if number is None:
                continue
            order = [*place, number]
            session.execute("DELETE FROM new_order WHERE no_w_id = %s AND no_d_id = %s AND no_o_id = %s", order)
            where = "WHERE o_w_id = %s AND o_d_id = %s AND o_id = %s"
            session.execute(f"UPDATE orders SET o_carrier_id = %s {where}", [self._random.randint(1, 10), *order])
            where = "WHERE ol_w_id = %s AND ol_d_id = %s AND ol_o_id = %s"
            session.execute(f"UPDATE order_line SET ol_delivery_d = %s {where}", [self._now(), *order])
            ((total,),) = session.execute(f"SELECT sum(ol_amount) FROM order_line {where}", order)
            session.execute(
                "UPDATE customer SET c_balance = c_balance + %s, c_delivery_cnt = c_delivery_cnt + 1 "
                "WHERE c_w_id = %s AND c_d_id = %s AND c_id = "
                "(SELECT o_c_id FROM orders WHERE o_w_id = %s AND o_d_id = %s AND o_id = %s)",
                [total, *place, *order],
            )
        session.commit()

    def _money(self, most: int) -> Decimal:
        return Decimal(self._random.randint(100, most * 100)) / 100

    def _now(self) -> datetime:
        return datetime.now(UTC).replace(tzinfo=None)


def held_by(database: Database, table: str) -> list[dict[str, Any]]:
    """Return the rows of one of the tables."""
    names = [column.split()[0] for column in _TABLES[table].split(", ")]
    with database.session() as session:
        return [
            dict(zip(names, row, strict=True)) for row in session.execute(f"SELECT {', '.join(names)} FROM {table}")
        ]
