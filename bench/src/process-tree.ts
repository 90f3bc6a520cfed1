import { readdirSync, readFileSync } from 'node:fs'
import { cpuUs } from './figures.ts'

/** A process with all that it started, and what they started, as far as they live. */
export function treeOf(pid: number): readonly number[] {
  const children = new Map<number, number[]>()
  for (const name of readdirSync('/proc')) {
    const child = Number(name)
    if (!Number.isInteger(child)) continue
    const parent = parentOf(child)
    if (parent !== undefined) children.set(parent, [...(children.get(parent) ?? []), child])
  }
  const tree = [pid]
  for (const one of tree) tree.push(...(children.get(one) ?? []))
  return tree
}

function parentOf(pid: number): number | undefined {
  const status = readIfThere(`/proc/${pid}/status`)
  const parent = /^PPid:\s+(\d+)$/m.exec(status ?? '')?.[1]
  return parent === undefined ? undefined : Number(parent)
}

/** Processes end while one looks at them. */
function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** Processor time that all processes of a tree have used so far, in milliseconds. Those that have ended do not count. */
export function treeCpuMs(pid: number): number {
  let sumUs = 0
  for (const one of treeOf(pid)) sumUs += readIfThere(`/proc/${one}/stat`) ? cpuUs(one) : 0
  return sumUs / 1000
}

/** Memory of a process with all that it started. */
export interface TreeMemory {
  readonly processes: number
  /** Resident memory; what processes share counts for each of them. */
  readonly residentBytes: number
  /** Resident memory; what n processes share counts for each of them as an nth. */
  readonly proportionalBytes: number
}

/** Reads what memory a tree has now. */
export function treeMemory(pid: number): TreeMemory {
  const rollups = treeOf(pid).map((one) => readIfThere(`/proc/${one}/smaps_rollup`) ?? '')
  const sumOf = (field: string): number => {
    const line = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm')
    return rollups.reduce((sum, text) => sum + Number(line.exec(text)?.[1] ?? 0) * 1024, 0)
  }
  return {
    processes: rollups.filter((text) => text !== '').length,
    residentBytes: sumOf('Rss'),
    proportionalBytes: sumOf('Pss'),
  }
}
