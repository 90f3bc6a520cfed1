import { cp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { until } from '@tutti/chassis/testing'
import { InferenceClient } from '@tutti/protocol/client'
import type { Test } from 'tap'
import { controlModel, repositoryIndex } from '../control-churn.ts'
import { sendBadRequests, servesRightBytes } from '../hostile.ts'
import {
  askShift,
  REVISIONS,
  SHIFTS,
  shiftEnsembles,
  shiftRepository,
} from '../processes/revisions-models.ts'
import { type Serving, serve } from '../serving.ts'
import { heldNow, INSPECTED } from './held.ts'
import { askAllKinds, KINDS_ASKED, PYTHON_FIXTURES, PYTHON_FLAGS } from './model-kinds.ts'
import { beRude } from './rude-clients.ts'
import { askMeanwhile, REQUESTS, SOAK_MODELS, soakRepository, type Way } from './way.ts'

/** Counts of one round. */
const LOADS = 12
const PYTHON_LOADS = 2
const BAD_REQUESTS = 400
const RUDE_TIMES = 3
const KINDS_TIMES = 3

/** A Python model that comes and goes: each time with processes of its own. */
const COMING = 'py_coming'

/** `tutti serve`: models are asked, loaded, changed and unloaded, while rude clients come and go. */
export async function startOneProcess(t: Test): Promise<Way> {
  const repository = await soakRepository(t)
  const shifts = { one: await shiftRepository(t, 'one'), three: await shiftRepository(t, 'three') }
  const ensembles = await shiftEnsembles(t)
  await cp(join(ensembles, 'ens_shift'), join(repository, 'ens_shift'), { recursive: true })
  await cp(join(PYTHON_FIXTURES, 'py_add_sub'), join(repository, COMING), { recursive: true })
  const serving = await serve(t, {
    repositories: [repository],
    flags: [
      '--model-control-mode=explicit',
      ...SOAK_MODELS.map((model) => `--load-model=${model}`),
      ...PYTHON_FLAGS,
    ],
    env: INSPECTED,
  })
  const place = { name: 'serve', member: { ...serving, id: 'serve' } }
  const change = async (revision: 'one' | 'three'): Promise<void> => {
    await rm(join(repository, 'shift'), { recursive: true, force: true })
    await cp(join(shifts[revision], 'shift'), join(repository, 'shift'), { recursive: true })
  }
  return {
    held: () => heldNow('serve', serving.process),
    round: async (test, { random, seed }) => {
      const problems: string[] = []
      let rudeClients = 0
      const asked = await askMeanwhile([place], seed, async (_record, ended) => {
        problems.push(...(await loadAndUnload(serving, change)))
        const rude = beRude(serving, random, RUDE_TIMES)
        await sendBadRequests(test, serving, { count: BAD_REQUESTS, seed })
        rudeClients = await rude
        for (let i = 0; i < KINDS_TIMES; i += 1) {
          problems.push(...(await askAllKinds(serving, (seed % 100_000) + i)))
        }
        await until('clients go on', () => ended() >= REQUESTS)
      })
      await servesRightBytes(test, serving)
      return {
        done: {
          ...asked.done,
          'loads and unloads': LOADS + PYTHON_LOADS,
          'bad requests': BAD_REQUESTS,
          'rude clients': rudeClients,
          'asked of Python and words': KINDS_TIMES * KINDS_ASKED,
        },
        problems: [...problems, ...asked.problems],
      }
    },
  }
}

/** Loads an ensemble with its model in one revision or the other, asks it, and unloads both; and a Python model. */
async function loadAndUnload(
  serving: Serving,
  change: (revision: 'one' | 'three') => Promise<void>,
): Promise<readonly string[]> {
  const problems: string[] = []
  const client = new InferenceClient({ address: `127.0.0.1:${serving.grpcPort}` })
  for (let i = 0; i < LOADS; i += 1) {
    const revision = i % 3 === 0 ? 'three' : 'one'
    await change(revision)
    await controlModel(serving, 'ens_shift', 'load')
    const got = await askShift(client, 'ens_shift', { seed: i })
    if (got !== REVISIONS[revision] * SHIFTS)
      problems.push(`ens_shift in revision ${revision}: ${got}`)
    await controlModel(serving, 'ens_shift', 'unload', { unload_dependents: true })
  }
  for (let i = 0; i < PYTHON_LOADS; i += 1) {
    await controlModel(serving, COMING, 'load')
    await controlModel(serving, COMING, 'unload')
  }
  client.close()
  await until('what was unloaded is gone', async () => {
    const index = await repositoryIndex(serving)
    return index.every(({ name = '', state = '' }) => {
      return SOAK_MODELS.includes(name) || !['READY', 'UNLOADING', 'LOADING'].includes(state)
    })
  })
  return problems
}
