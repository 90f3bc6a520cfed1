import { createRandom, type Random } from '../../attacks/random.ts'
import type { Call, Case } from '../case.ts'
import { controlCase } from './control-cases.ts'
import { inferCase, malformedCase, metadataCase, streamCase, toGrpcRequest } from './grpc-cases.ts'
import { DECOUPLED, MODELS } from './models.ts'
import { mutated } from './mutations.ts'
import { otherCase } from './other-cases.ts'
import { validParts } from './parts.ts'
import { pythonCase } from './python-cases.ts'
import { rawBodyCase, restInferCase, restPathCase } from './rest-cases.ts'
import { textCase } from './text-cases.ts'

/** Kinds of cases, each with its share of a run in parts of a hundred. */
const FAMILIES = {
  infer: { share: 23, build: (random: Random) => ({ calls: inferCase(random) }) },
  stream: { share: 10, build: (random: Random) => ({ calls: streamCase(random) }) },
  metadata: { share: 7, build: (random: Random) => ({ calls: metadataCase(random) }) },
  malformed: { share: 1, build: (random: Random) => ({ calls: malformedCase(random) }) },
  rest: { share: 24, build: (random: Random) => ({ calls: restInferCase(random) }) },
  raw: { share: 2, build: (random: Random) => ({ calls: rawBodyCase(random) }) },
  paths: { share: 8, build: (random: Random) => ({ calls: restPathCase(random) }) },
  counts: { share: 5, build: countsCase },
  other: { share: 6, build: (random: Random) => ({ calls: otherCase(random) }) },
  control: { share: 5, build: (random: Random, seed: number) => controlCase(seed, random) },
  python: { share: 3, build: (random: Random, seed: number) => pythonCase(seed, random) },
  texts: { share: 6, build: (random: Random, seed: number) => textCase(seed, random) },
} as const satisfies Record<
  string,
  { share: number; build: (random: Random, seed: number) => Omit<Case, 'id'> }
>

/** Builds a case about what statistics and metrics count of some requests, good and bad. */
function countsCase(random: Random): { readonly calls: readonly Call[] } {
  const { chance, oneOf, pick } = random
  const model = oneOf(chance(0.2) ? DECOUPLED : MODELS)
  const rpc = model.isDecoupled === true ? 'ModelStreamInfer' : 'ModelInfer'
  const calls = Array.from({ length: 1 + pick(3) }, () => {
    const parts = chance(0.4)
      ? mutated(validParts(model, random), random)
      : validParts(model, random)
    const isUnordered = model.name === 'ens_repeat'
    return {
      rpc,
      requests: [toGrpcRequest({ ...parts, model: model.name, version: '' }, chance(0.3))],
      isUnordered,
    }
  })
  return { calls: [...calls, { counts: [model.name] }] }
}

/** So many cases, shares of each family; the same ones for the same seed. */
export function* generateCases(count: number, seed: number): Generator<Case> {
  const families = Object.entries(FAMILIES)
  for (const [at, [name, { share, build }]] of families.entries()) {
    const ownCount = Math.round((count * share) / 100)
    for (let i = 0; i < ownCount; i++) {
      const own = seed + at * 1_000_000 + i
      const test = { id: `${name}-${own}`, ...build(createRandom(own), own) }
      if (!endsTriton(test)) yield test
    }
  }
}

/** Classes of a BYTES output end a real Triton 2.51. */
function endsTriton(test: Case): boolean {
  const text = JSON.stringify(test.calls)
  return text.includes('classification') && /\b(text|request|ens_request|types)\b/.test(text)
}
