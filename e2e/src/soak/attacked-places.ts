import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { type StartedProcess, until } from '@tutti/chassis/testing'
import type { Test } from 'tap'
import { attackedModels, STEP_MODELS } from '../attacks/attacked-models.ts'
import { PICTURE_ENSEMBLE } from '../attacks/large-calls.ts'
import { createMemoryGroup, type MemoryGroup } from '../faults/memory-group.ts'
import { startHarness } from '../processes/harness.ts'
import { chainQuestion, type Question } from '../processes/questions.ts'
import { isOk } from '../processes/seen.ts'
import { serve, type Target } from '../serving.ts'
import { fp32, row, toFloats } from '../tensors.ts'

const MEBIBYTE = 2 ** 20
/** Memory limit of a router's pod. Models have none by default; a step that is attacked gets the same. */
const LIMIT_BYTES = 2048 * MEBIBYTE
/** Memory limit of a pod of the chart's NATS, without accounts. */
const BROKER_LIMIT_BYTES = 1024 * MEBIBYTE

/** A process that is attacked, in a group of its own. */
export interface AttackedPlace {
  readonly name: string
  readonly target: Target
  readonly process: StartedProcess
  readonly group: MemoryGroup
  /** The request that another client sends to it. */
  readonly question: Question
}

/** Has a process tell of long turns of its loop. */
const MEASURED = {
  NODE_OPTIONS: `--import=${fileURLToPath(new URL('measure-turns.ts', import.meta.url))}`,
}
const EXPLICIT = ['--model-control-mode=explicit', '--load-model=*']

/** Starts `tutti serve`. */
export async function startServe(t: Test): Promise<AttackedPlace> {
  const group = createMemoryGroup(t, LIMIT_BYTES)
  const serving = await serve(t, {
    repositories: await attackedModels(t),
    flags: EXPLICIT,
    env: MEASURED,
    within: group.within,
  })
  return {
    name: 'serve',
    target: serving,
    process: serving.process,
    group,
    question: chainQuestion(),
  }
}

/** Starts a router and a step around a broker, all with their defaults. */
export async function startRouterAndStep(t: Test) {
  const groups = {
    broker: createMemoryGroup(t, BROKER_LIMIT_BYTES),
    router: createMemoryGroup(t, LIMIT_BYTES),
    step: createMemoryGroup(t, LIMIT_BYTES),
  }
  const harness = await startHarness(t)
  groups.broker.take(harness.broker.pid)
  const repositories = await attackedModels(t)
  const common = { repositories, env: MEASURED }
  const [router, step] = await Promise.all([
    harness.router({ ...common, within: groups.router.within }),
    harness.step({ ...common, models: STEP_MODELS, within: groups.step.within }),
  ])
  await until('the router serves all', () =>
    isServed(router, [...STEP_MODELS, 'ens_chain', PICTURE_ENSEMBLE]),
  )
  const places: readonly AttackedPlace[] = [
    {
      name: 'router',
      target: router,
      process: router.process,
      group: groups.router,
      question: chainQuestion(),
    },
    {
      name: 'step',
      target: step,
      process: step.process,
      group: groups.step,
      question: addOneQuestion(),
    },
  ]
  const broker = { pid: harness.broker.pid, group: groups.broker }
  return {
    places,
    broker: { ...broker, isAlive: () => readdirSync('/proc').includes(String(broker.pid)) },
  }
}

async function isServed({ httpPort }: Target, models: readonly string[]): Promise<boolean> {
  const urls = models.map((model) => `http://127.0.0.1:${httpPort}/v2/models/${model}/ready`)
  const served = await Promise.all(urls.map(isOk))
  return served.every(Boolean)
}

/** A step has no ensembles. */
function addOneQuestion(): Question {
  const x = row('X')
  const expected = fp32(
    'Y',
    toFloats(x).map((value) => value + 1),
  ).data
  return { request: { modelName: 'add_one_batch', inputs: [x] }, output: 'Y', expected }
}
