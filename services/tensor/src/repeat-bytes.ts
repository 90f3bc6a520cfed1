/** Repeats bytes. @returns `data` itself for one time, else a copy. */
export function repeatBytes(data: Uint8Array, times: number): Uint8Array {
  if (times === 1) return data
  const repeated = new Uint8Array(times * data.byteLength)
  for (let i = 0; i < times; i++) repeated.set(data, i * data.byteLength)
  return repeated
}
