import { cpus } from 'node:os'

/** Long enough for a process that has just begun to show what it takes. */
const WINDOW_MS = 2000
/** Idle cores in which one process of tests more finds what it takes on average. */
const WANTED_CORES = 0.5

/**
 * Tells whether the processor has time for more: tests wait for other processes, for Kubernetes and for the clock, each file for a
 * share of its own.
 *
 * @param {() => { idleMs: number, totalMs: number, cores: number }} [read] - times of all cores together since some moment.
 */
export function watchProcessor(read = readProcessor) {
  let mark = read()
  return {
    /** Something has begun: what was idle before says nothing any more. */
    begin() {
      mark = read()
    },
    /** True if half a core was idle for two seconds; each look that has so much to tell begins anew. */
    hasRoom() {
      const now = read()
      const wallMs = (now.totalMs - mark.totalMs) / now.cores
      if (wallMs < WINDOW_MS) return false
      const idleCores = (now.idleMs - mark.idleMs) / wallMs
      mark = now
      return idleCores >= WANTED_CORES
    },
  }
}

function readProcessor() {
  const all = cpus().map(({ times }) => times)
  const idleMs = all.reduce((sum, { idle }) => sum + idle, 0)
  const totalMs = all.flatMap((times) => Object.values(times)).reduce((sum, ms) => sum + ms, 0)
  return { idleMs, totalMs, cores: Math.max(1, all.length) }
}
