import t from 'tap'
import { dice } from '../testing/random-ensemble.ts'
import { findParts } from './find-parts.ts'

type Wanted = Parameters<typeof findParts>[0]

/** Makes the steps of a graph, each of which makes the tensor of its index. */
function planOf(
  reads: readonly (readonly number[])[],
  after: Readonly<Record<number, readonly number[]>> = {},
): Wanted {
  const steps = reads.map((read, index) => ({ index, reads: read, dependsOn: after[index] ?? [] }))
  return { steps, tensors: reads.map((_, step) => ({ step })) } as unknown as Wanted
}

/** Finds the parts where only these steps have a replica in common. */
const find = (plan: Wanted, inside: readonly number[]) =>
  findParts(plan, (steps) => steps.every((step) => inside.includes(step)))

await t.test('parts are the largest that run as if apart', (t) => {
  const chain = planOf([[], [0], [1], [2]])
  t.same(find(chain, [0, 1, 2, 3]), [[0, 1, 2, 3]])
  t.same(find(chain, [0, 1, 3]), [[0, 1]], 'what is in between is elsewhere')
  t.same(find(chain, [0, 2]), [])
  const diamond = planOf([[], [0], [0], [1, 2]])
  t.same(find(diamond, [0, 1, 2, 3]), [[0, 1, 2, 3]])
  t.same(find(diamond, [0, 1, 3]), [], 'one branch would wait, or hold up the other')
  const late = planOf([[], [], [0, 1]])
  t.same(find(late, [1, 2]), [], 'step 1 does not wait for step 0')
  t.same(find(planOf([[], [0], [0, 1], [2]]), [1, 2, 3]), [[1, 2, 3]])
  t.same(find(planOf([[], []]), [0, 1]), [], 'nothing goes between them')
  t.same(find(planOf([[], [0], []], { 2: [1] }), [0, 1]), [], 'another one depends on one of them')
  t.same(find(planOf([[], [0], [1]], { 2: [0] }), [0, 1, 2]), [[0, 1, 2]])
  t.end()
})

await t.test('no part waits for itself, in any graph', (t) => {
  const roll = dice(1)
  let found = 0
  for (let round = 0; round < 2000; round += 1) {
    const reads = Array.from({ length: 2 + roll(9) }, (_, i) =>
      [...Array(i).keys()].filter(() => roll(3) === 0),
    )
    const colours = reads.map(() => roll(3))
    const plan = planOf(reads)
    const parts = findParts(plan, (steps) => new Set(steps.map((step) => colours[step])).size === 1)
    found += parts.length
    const partOf = reads.map((_, step) => parts.find((part) => part.includes(step)) ?? [step])
    const left = new Set(partOf)
    const isReady = (part: readonly number[]): boolean =>
      part.every((step) =>
        (reads[step] ?? []).every((maker) => {
          const of = partOf[maker]
          return of === part || of === undefined || !left.has(of)
        }),
      )
    for (let ready = [...left].find(isReady); ready; ready = [...left].find(isReady)) {
      left.delete(ready)
    }
    if (left.size > 0) t.fail(`parts wait for one another: ${JSON.stringify({ reads, colours })}`)
  }
  t.ok(found > 500, `${found} parts`)
  t.end()
})
