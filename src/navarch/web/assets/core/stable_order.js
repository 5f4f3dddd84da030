// An order that does not move under the reader's eyes. Rows are sorted when the reader chooses an order or a filter. Later changes leave
// every row in its place: rows that vanish are taken out, new ones come at the end, until the reader asks for the order again.
import { useMemo, useRef } from "./dom.js";

// `choice` names what the reader chose; a new one sorts anew. Returns the rows in order, and whether sorting would move one.
export function useStableOrder(rows, keyOf, compare, choice) {
  const kept = useRef({ choice: null, keys: [] });
  return useMemo(() => {
    const ordered = kept.current.choice === choice ? continued(kept.current.keys, rows, keyOf, compare) : [...rows].sort(compare);
    kept.current = { choice, keys: ordered.map(keyOf) };
    return { ordered, moved: ordered.some((row, i) => i > 0 && compare(ordered[i - 1], row) > 0) };
  }, [rows, choice]);
}

export function continued(keys, rows, keyOf, compare) {
  const present = new Map(rows.map((row) => [keyOf(row), row]));
  const stayed = [];
  for (const key of keys) {
    const row = present.get(key);
    if (row !== undefined) {
      stayed.push(row);
      present.delete(key);
    }
  }
  return stayed.concat([...present.values()].sort(compare));
}

// Compares by one column; nothing known comes last; equal rows go by key.
export function comparison(valueOf, descending, keyOf) {
  const sign = descending ? -1 : 1;
  return (left, right) => {
    const a = valueOf(left);
    const b = valueOf(right);
    if (a !== b) {
      if (a === null || a === undefined || a === "") return 1;
      if (b === null || b === undefined || b === "") return -1;
      return a < b ? -sign : sign;
    }
    const ka = keyOf(left);
    const kb = keyOf(right);
    return ka < kb ? -1 : ka > kb ? 1 : 0;
  };
}
