import { cpus, freemem, totalmem } from 'node:os'
import type { MetricFamily } from './metrics-text.ts'

/** What the host looks like; the operating system by default. */
export interface HostReading {
  /** Milliseconds since the start of the host, over all CPUs. */
  cpuTimes(): { readonly busyMs: number; readonly totalMs: number }
  readonly memoryTotalBytes: number
  readonly memoryFreeBytes: number
}

export const systemHost: HostReading = {
  cpuTimes: () => {
    let busyMs = 0
    let idleMs = 0
    for (const { times } of cpus()) {
      busyMs += times.user + times.nice + times.sys + times.irq
      idleMs += times.idle
    }
    return { busyMs, totalMs: busyMs + idleMs }
  },
  get memoryTotalBytes() {
    return totalmem()
  },
  get memoryFreeBytes() {
    return freemem()
  },
}

/** Reads Triton's host gauges. The utilisation is that since the last scrape, 0 at the first. */
export class HostMetrics {
  readonly #host: HostReading
  #last: { readonly busyMs: number; readonly totalMs: number }

  constructor(host: HostReading) {
    this.#host = host
    this.#last = host.cpuTimes()
  }

  read(): readonly MetricFamily[] {
    const { memoryTotalBytes, memoryFreeBytes } = this.#host
    return [
      gauge('nv_cpu_utilization', 'CPU utilization rate [0.0 - 1.0]', this.#utilization()),
      gauge('nv_cpu_memory_total_bytes', 'CPU total memory (RAM), in bytes', memoryTotalBytes),
      gauge(
        'nv_cpu_memory_used_bytes',
        'CPU used memory (RAM), in bytes',
        memoryTotalBytes - memoryFreeBytes,
      ),
    ]
  }

  #utilization(): number {
    const now = this.#host.cpuTimes()
    const totalMs = now.totalMs - this.#last.totalMs
    const busyMs = now.busyMs - this.#last.busyMs
    this.#last = now
    return totalMs > 0 ? Math.min(1, Math.max(0, busyMs / totalMs)) : 0
  }
}

function gauge(name: string, help: string, value: number): MetricFamily {
  return { name, help, type: 'gauge', series: [{ labels: [], value }] }
}
