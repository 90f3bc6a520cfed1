import { cpus, freemem, totalmem } from 'node:os'
import type { MetricFamily } from '../metrics-text.ts'

/** The state of the host; times since its start, over all CPUs. */
export interface HostReading {
  readonly busyMs: number
  readonly totalMs: number
  readonly memoryTotalBytes: number
  readonly memoryFreeBytes: number
}

/** Asks the operating system. */
export function readHost(): HostReading {
  let busyMs = 0
  let idleMs = 0
  for (const { times } of cpus()) {
    busyMs += times.user + times.nice + times.sys + times.irq
    idleMs += times.idle
  }
  const totalMs = busyMs + idleMs
  return { busyMs, totalMs, memoryTotalBytes: totalmem(), memoryFreeBytes: freemem() }
}

/** Reads Triton's host gauges. The utilisation is that since the last reading, or since this call. */
export function hostFamilies(read: () => HostReading): () => readonly MetricFamily[] {
  let last = read()
  return () => {
    const now = read()
    const totalMs = now.totalMs - last.totalMs
    const busy = totalMs > 0 ? (now.busyMs - last.busyMs) / totalMs : 0
    last = now
    const usedBytes = now.memoryTotalBytes - now.memoryFreeBytes
    const total = now.memoryTotalBytes
    return [
      gauge(
        'nv_cpu_utilization',
        'CPU utilization rate [0.0 - 1.0]',
        Math.min(1, Math.max(0, busy)),
      ),
      gauge('nv_cpu_memory_total_bytes', 'CPU total memory (RAM), in bytes', total),
      gauge('nv_cpu_memory_used_bytes', 'CPU used memory (RAM), in bytes', usedBytes),
    ]
  }
}

function gauge(name: string, help: string, value: number): MetricFamily {
  return { name, help, type: 'gauge', series: [{ labels: [], value }] }
}
