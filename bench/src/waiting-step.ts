import type { Engine } from '@tutti/backends'
import { silentLogger, systemClock } from '@tutti/chassis'
import { toEndpointOptions } from '@tutti/step'
import { openTestStep } from '@tutti/step/testing'
import { openStepEndpoint } from '@tutti/transport'
import { answerParent } from './forked.ts'

/*
 * A step, as a process: `REPLICA BROKER-URL NATS-REPOSITORY MODEL-REPOSITORY WAIT-MS`. It is the real one but for its engine,
 * which waits instead of computing, so that replicas do not share processors. Answers how many requests it has executed.
 */

const [replica = '', url = '', repository = '', models = '', wait = ''] = process.argv.slice(2)
const waitMs = Number(wait)
let executed = 0

const engine: Engine = {
  backend: 'waiting',
  inspect: () => Promise.reject(new Error('the configuration of a waiting model is whole')),
  load: async () => ({
    // The configuration is complete, so the engine is not asked.
    signature: { inputs: [], outputs: [] },
    execute: async (batch) => {
      const started = performance.now()
      await new Promise((resolve) => setTimeout(resolve, waitMs))
      for (const { request, sink } of batch) {
        const outputs = request.inputs.map((input) => ({ ...input, name: 'y' }))
        sink.send({ index: 0, final: true, outputs, parameters: new Map() })
      }
      executed += batch.length
      const computeInferNs = (performance.now() - started) * 1e6
      return { computeInputNs: 0, computeInferNs, computeOutputNs: 0 }
    },
    close: async () => {},
  }),
}

const step = await openTestStep([models], { replica, engines: [engine], autoComplete: false })
await openStepEndpoint({
  broker: { servers: [url], prefix: 'tutti', repository },
  member: replica,
  clock: systemClock,
  log: silentLogger,
  ...toEndpointOptions(step, { replica }),
})
answerParent(async () => executed)
