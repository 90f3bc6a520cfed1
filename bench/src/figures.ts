import { readFileSync, writeFileSync } from 'node:fs'

/** The middle value; the mean of the two middle ones of an even number. NaN of nothing. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** The value below which the part `q` of all lies, interpolated. NaN of nothing. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (sorted.length - 1) * q
  const below = sorted[Math.floor(at)] ?? Number.NaN
  const above = sorted[Math.ceil(at)] ?? Number.NaN
  return below + (above - below) * (at - Math.floor(at))
}

/** Linux counts processor time in ticks of 10 ms, whatever the kernel's own frequency is. */
const TICK_US = 10_000

/** Processor time that a process has used so far, all threads, user and system, in microseconds. */
export function cpuUs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  // The second field is the command in brackets and may hold spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_US
}

function statusBytes(pid: number, field: string): number {
  const match = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(
    readFileSync(`/proc/${pid}/status`, 'utf8'),
  )
  return Number(match?.[1]) * 1024
}

/** Resident memory of a process now, in bytes. */
export function residentBytes(pid: number): number {
  return statusBytes(pid, 'VmRSS')
}

/** The most resident memory since `resetPeak`, in bytes. */
export function peakBytes(pid: number): number {
  return statusBytes(pid, 'VmHWM')
}

/** Makes the peak start again from what is resident now. */
export function resetPeak(pid: number): void {
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
}

/** Prints rows under their headings, columns aligned, numbers to the right. */
export function printTable(rows: readonly (readonly string[])[]): void {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)))
  for (const row of rows) {
    const cells = row.map((cell, i) =>
      i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0),
    )
    console.log(cells.join('  '))
  }
}
