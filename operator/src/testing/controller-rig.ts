import { silentLogger } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { Controller, type ControllerOptions } from '../runtime/controller.ts'
import type { Source } from '../runtime/sources.ts'
import type { Priority } from '../runtime/workqueue.ts'
import { testMetrics } from './test-metrics.ts'

/** Makes a source to which a test adds keys. @param keys - keys of present objects. */
export function testSource(keys: readonly string[] = []) {
  let enqueue: ((key: string, priority: Priority) => void) | undefined
  const source: Source = {
    hasSynced: true,
    keys: () => keys,
    start: (listener) => {
      enqueue = listener
      for (const key of keys) listener(key, 'low')
      return () => (enqueue = undefined)
    },
  }
  return {
    source,
    add: (key: string) => enqueue?.(key, 'high'),
    isStarted: () => enqueue !== undefined,
  }
}

/** Makes a controller with a source for the test, a manual clock, and functions that read its metrics. */
export function controllerRig(
  o: Partial<ControllerOptions> & Pick<ControllerOptions, 'reconcile'>,
) {
  const clock = createManualClock()
  const { runtime, read } = testMetrics()
  const { source, add, isStarted } = testSource()
  const controller = new Controller({
    name: 'model',
    sources: [source],
    clock,
    random: () => 0.5,
    log: silentLogger,
    metrics: runtime,
    ...o,
  })
  const total = (result: string) =>
    read(`controller_runtime_reconcile_total{controller="model",result="${result}"}`)
  const count = (name: string) => read(`controller_runtime_${name}{controller="model"}`)
  return { controller, clock, add, isStarted, total, count, read }
}
