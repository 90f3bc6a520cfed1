import type { DynamicBatching, ModelConfig } from '@tutti/model-config'
import * as fc from 'fast-check'
import t from 'tap'
import { compileSequences } from '../sequence/build-sequences.ts'
import { createSchedulerRig, dynamicBatching, scriptedConfig } from '../testing/scheduler-rig.ts'
import { sequenceConfig, sequenceRequest } from '../testing/sequence-builders.ts'
import { batchRequest } from '../testing/step-builders.ts'

type Event =
  | {
      readonly do: 'submit'
      readonly batch: number
      readonly width: number
      readonly deadlineMs: number
      /** For models with sequences; the batch is the id then. */
      readonly start: boolean
      readonly end: boolean
      readonly timeoutUs: bigint
    }
  | { readonly do: 'cancel' | 'finish' | 'fail' | 'forget'; readonly index: number }
  | { readonly do: 'pass'; readonly ms: number }
  | { readonly do: 'settle' }

const event: fc.Arbitrary<Event> = fc.oneof(
  fc.record({
    do: fc.constant('submit' as const),
    batch: fc.integer({ min: 1, max: 4 }),
    width: fc.constantFrom(2, 3),
    deadlineMs: fc.constantFrom(0, 1, 3, 1e6, 1e6, 1e6),
    start: fc.constantFrom(true, true, false),
    end: fc.boolean(),
    timeoutUs: fc.constantFrom(0n, 0n, 2000n),
  }),
  fc.record({
    do: fc.constantFrom('cancel' as const, 'finish' as const, 'fail' as const, 'forget' as const),
    index: fc.nat(6),
  }),
  fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 0, max: 4 }) }),
  fc.record({ do: fc.constant('settle' as const) }),
)

const setup = fc.record({
  instances: fc.integer({ min: 1, max: 3 }),
  openExecutions: fc.constantFrom(1, 1, 3),
  kind: fc.constantFrom('plain' as const, 'dynamic' as const, 'direct' as const, 'oldest' as const),
  delayUs: fc.constantFrom(0, 2000),
  preserveOrdering: fc.boolean(),
  timeoutUs: fc.constantFrom(0, 3000),
  action: fc.constantFrom('REJECT' as const, 'DELAY' as const),
  maxQueueSize: fc.constantFrom(0, 3),
  releasesFirst: fc.boolean(),
  endsByStop: fc.boolean(),
})

const STRATEGIES = {
  direct: { direct: { max_queue_delay_microseconds: 2000, minimum_slot_utilization: 0.5 } },
  oldest: {
    oldest: {
      max_candidate_sequences: 2,
      preferred_batch_size: [2],
      max_queue_delay_microseconds: 1000,
      preserve_ordering: true,
    },
  },
}

function toConfig(
  { kind }: { readonly kind: 'plain' | 'dynamic' | 'direct' | 'oldest' },
  dynamic: DynamicBatching,
): ModelConfig {
  if (kind === 'plain') return scriptedConfig()
  if (kind === 'dynamic') return scriptedConfig({ dynamic_batching: dynamic })
  return sequenceConfig({ max_sequence_idle_microseconds: 4000, ...STRATEGIES[kind] })
}

/** Lets everything run that waits for a promise. */
const settle = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

await t.test(
  'every accepted request gets exactly one final response, whatever happens',
  async (t) => {
    await fc.assert(
      fc.asyncProperty(setup, fc.array(event, { maxLength: 40 }), async (o, events) => {
        const dynamic = dynamicBatching({
          max_queue_delay_microseconds: o.delayUs,
          preserve_ordering: o.preserveOrdering,
          default_queue_policy: {
            timeout_action: o.action,
            default_timeout_microseconds: o.timeoutUs,
            allow_timeout_override: false,
            max_queue_size: o.maxQueueSize,
          },
        })
        const config = toConfig(o, dynamic)
        const isSequence = config.sequence_batching !== undefined
        const { instances, openExecutions } = o
        const bounds = { instances, openExecutions, maxQueuedRequests: 5 }
        const sequences = isSequence ? { sequences: compileSequences(config, new Map()) } : {}
        const rig = createSchedulerRig({ config, ...bounds, ...sequences })
        rig.model.releasesFirst = o.releasesFirst
        const requests: ReturnType<typeof rig.submit>[] = []
        const open: (typeof rig.model.executions)[number][] = []
        let seen = 0
        const look = (): void => {
          for (; seen < rig.model.executions.length; seen += 1) open.push(rig.model.at(seen))
        }
        const run = async (e: Event): Promise<void> => {
          look()
          if (e.do === 'submit') {
            const { batch, width } = e
            const id = String(requests.length)
            const deadlineAt = rig.clock.now() + e.deadlineMs
            const request = isSequence
              ? sequenceRequest({ ...e, id: BigInt(batch) }, width)
              : batchRequest({ id, batch, width })
            requests.push(rig.submit(id, request, { deadlineAt }))
          } else if (e.do === 'cancel') requests.at(-1 - e.index)?.cancel()
          else if (e.do === 'pass') rig.clock.advance(e.ms)
          else if (e.do === 'settle') await settle()
          else {
            const [execution] = open.splice(e.index % Math.max(1, open.length), 1)
            if (e.do === 'finish') execution?.finish()
            else if (e.do === 'fail') execution?.fail(new Error('scripted'))
            else execution?.end()
          }
        }
        for (const e of events) await run(e)
        if (o.endsByStop) rig.scheduler.stop()
        const drained = rig.scheduler.drain()
        while (rig.scheduler.load.inFlight > 0) {
          rig.clock.advance(5)
          look()
          for (const execution of open.splice(0)) execution.finish()
          await settle()
        }
        await drained
        for (const { sink } of requests) {
          const finals = sink.responses.filter((response) => response.final)
          if (finals.length !== 1 || sink.responses.length !== 1) throw new Error('not one answer')
        }
        const { success, fail } = rig.statistics.snapshot()
        const counted = Number(success.count + fail.count)
        if (counted !== requests.length) throw new Error(`${counted} counted of ${requests.length}`)
        if (rig.statistics.pending !== 0) throw new Error('pending is left')
      }),
      { numRuns: 400 },
    )
    t.pass()
  },
)
