/** `[request id: X] `, as Triton begins messages about one request; without an id X is `<id_unknown>`. */
export function requestPrefix(id: string): string {
  return `[request id: ${id === '' ? '<id_unknown>' : id}] `
}
