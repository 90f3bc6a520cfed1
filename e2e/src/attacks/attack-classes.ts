import type { Target } from '../serving.ts'
import { GROWING_MODEL, holdAnyBytes } from './held-bytes.ts'
import { holdSmallCalls } from './held-calls.ts'
import {
  divideLeast,
  PICTURE_ENSEMBLE,
  postLongJson,
  sendAnyTexts,
  sendPicture,
} from './large-calls.ts'
import { openMany, scrapeMany } from './many-connections.ts'
import { createRandom, type Random } from './random.ts'
import { attackGrpc, attackHttp, moveWindows } from './raw-clients.ts'
import { callWithTexts } from './text-calls.ts'
import { callCompressed, loadFromPage, postJson } from './whole-calls.ts'

const HTTP_STATUSES = new Set([200, 400, 404, 405, 408, 413, 500, 501, 503])

function grpcProblem(status: string): string | undefined {
  return /^\d+$/.test(status) ? undefined : `a call ended with ${status}`
}

function restProblem(status: number): string | undefined {
  return HTTP_STATUSES.has(status) ? undefined : `HTTP ${status}`
}

/** Sends one attack. @returns what is wrong with the way in which it ended, as a text. */
type Attack = (target: Target, random: Random) => Promise<string | undefined | void>

const ATTACKS = {
  grpc: ({ grpcPort }, random) => attackGrpc(grpcPort, random),
  rest: ({ httpPort }, random) => attackHttp(httpPort, random),
  probes: ({ metricsPort }, random) => attackHttp(metricsPort, random),
  compressed: async ({ grpcPort }, random) => grpcProblem(await callCompressed(grpcPort, random)),
  texts: async ({ grpcPort }, random) => grpcProblem(await callWithTexts(grpcPort, random)),
  elements: async ({ grpcPort }, random) => grpcProblem(await sendAnyTexts(grpcPort, random)),
  json: async ({ httpPort }, random) => restProblem(await postJson(httpPort, random)),
  bodies: async (target, random) => {
    const status = await postLongJson(target, random)
    return status === undefined ? undefined : restProblem(status)
  },
  pictures: async ({ grpcPort }, random) => {
    const side = 16 + random.pick(random.oneOf([200, 200, 1000, 7000]))
    const model = random.oneOf([PICTURE_ENSEMBLE, GROWING_MODEL])
    return grpcProblem(await sendPicture(grpcPort, model, side))
  },
  divisions: (target, random) => divideLeast(target, random),
  windows: async ({ grpcPort }, random) => {
    const o = { calls: 1 + random.pick(1000), changes: random.pick(2000) }
    await moveWindows(grpcPort, random, o)
  },
  small: ({ grpcPort }, random) => holdSmallCalls(grpcPort, random),
  connections: (target, random) => openMany(target, random),
  scrapes: (target, random) => scrapeMany(target, random),
  held: (target, random) => holdAnyBytes(target, random),
  pages: ({ httpPort }, random) => loadFromPage(httpPort, random),
} as const satisfies Record<string, Attack>

/** A kind of attack, with a generator of its own. */
export type AttackClass = keyof typeof ATTACKS

// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of a table that nothing adds to
export const ATTACK_CLASSES = Object.keys(ATTACKS) as readonly AttackClass[]

/** Classes of attacks that take seconds each, or the memory of a machine. The soak has them, whose servers have a limit of memory. */
const LARGE: ReadonlySet<AttackClass> = new Set<AttackClass>([
  'elements',
  'bodies',
  'pictures',
  'connections',
  'scrapes',
])

export const QUICK_CLASSES = ATTACK_CLASSES.filter((kind) => !LARGE.has(kind))

/** Sends the attack of a class that a seed stands for. @returns what is wrong with the way in which it ended. */
export async function attackOnce(
  kind: AttackClass,
  target: Target,
  seed: number,
): Promise<string | undefined> {
  try {
    const problem = await ATTACKS[kind](target, createRandom(seed))
    return problem === undefined ? undefined : `seed ${seed}: ${problem}`
  } catch (error) {
    return `seed ${seed}: ${String(error)}`
  }
}
