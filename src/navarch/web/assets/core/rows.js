// Tables of the API as objects, and changes laid over them.

// {columns, rows} -> one object a row.
export function objects(columns, rows) {
  return rows.map((row) => {
    const found = {};
    for (let i = 0; i < columns.length; i++) found[columns[i]] = row[i];
    return found;
  });
}

// The map with changed rows put in and removed ones taken out. It is a new map where something changed, so that pages see the change.
// Rows that stay keep their place in it.
export function overlaid(map, changed, removed, keyOf) {
  if (!changed.length && !removed?.length) return map;
  const next = new Map(map);
  for (const row of changed) next.set(keyOf(row), row);
  for (const key of removed ?? []) next.delete(key);
  return next;
}

// Nodes come as columns, so that 40,000 of them stay small. Here each becomes an object:
// {name, status, pods, allocatable: [by resource], used, useless, domains: [by level], queue, job}.
export function nodeObjects(answer) {
  const chosen = (column, i) => (column && column.index[i] >= 0 ? column.values[column.index[i]] : null);
  return answer.names.map((name, i) => ({
    name,
    status: answer.status[i],
    pods: answer.pods[i],
    allocatable: answer.allocatable.map((column) => column[i]),
    used: answer.used.map((column) => column[i]),
    useless: answer.useless.map((column) => column[i]),
    domains: answer.domains.map((column) => chosen(column, i)),
    queue: chosen(answer.queue, i),
    job: chosen(answer.job, i),
  }));
}
