import { readFile } from 'node:fs/promises'

/** Bytes of memory that a process has resident. */
export async function memoryBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const [, kibibytes] = /^VmRSS:\s+(\d+) kB$/m.exec(status) ?? []
  if (kibibytes === undefined) throw new Error(`process ${pid} has no VmRSS`)
  return Number(kibibytes) * 1024
}
