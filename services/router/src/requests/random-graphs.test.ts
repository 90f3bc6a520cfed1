import { testFactor, testSeed } from '@tutti/chassis/testing'
import t from 'tap'
import { CONSTRUCTS, constructsOf } from '../testing/graphs/constructs.ts'
import { drawGraph } from '../testing/graphs/draw-graph.ts'
import { executeBounded, executeGraph } from '../testing/graphs/graph-case.ts'

/*
 * Graphs are drawn with every construct, and executed by the run with its wrappers over models that fail, take their time and stream, on a
 * virtual clock. A naive interpreter computes what is wanted: outputs, errors with step and item, executions of each model. The soak
 * takes a million of them.
 */

const GRAPHS = 400 * testFactor()

/** Ends that some of the requests have. */
const ENDS = [
  'answered',
  'undecided',
  'ENGINE_FAILED',
  'STEP_TIMEOUT',
  'DEADLINE_EXCEEDED',
  'CONDITION_FAILED',
  'ITEMS_INVALID',
  'OUTPUT_ABSENT',
  'CANCELLED',
]

await t.test('drawn graphs give what the interpreter computes', async (t) => {
  const firstSeed = testSeed() * 1000
  const ends = new Map<string, number>()
  const constructs = new Set<string>()
  const problems: string[] = []
  for (let i = 0; i < GRAPHS; i += 1) {
    const graph = drawGraph(firstSeed + i)
    for (const name of constructsOf(graph)) constructs.add(name)
    const result = await executeGraph(graph)
    problems.push(...result.problems)
    for (const end of result.ends) ends.set(end, (ends.get(end) ?? 0) + 1)
  }
  t.same(problems.slice(0, 5), [], `${problems.length} problems`)
  t.same(
    CONSTRUCTS.filter((name) => !constructs.has(name)),
    [],
    'constructs that no graph has',
  )
  t.same(
    ENDS.filter((end) => !ends.has(end)),
    [],
    'ends that no request has',
  )
  const requests = [...ends.values()].reduce((sum, count) => sum + count, 0)
  t.ok((ends.get('answered') ?? 0) > requests / 4, 'a fair share is answered')
  t.ok((ends.get('undecided') ?? 0) < requests / 8, 'few are undecided')
})

await t.test('drawn graphs give the same where replicas run parts of them', async (t) => {
  const firstSeed = testSeed() * 1000
  const problems: string[] = []
  let parts = 0
  for (let i = 0; i < GRAPHS; i += 1) {
    const result = await executeGraph(drawGraph(firstSeed + i, { endsLate: false }), {
      runsParts: true,
    })
    problems.push(...result.problems)
    parts += result.parts
  }
  t.same(problems.slice(0, 5), [], `${problems.length} problems`)
  t.ok(parts > GRAPHS, `${parts} parts`)
})

await t.test('where memory ends, everything is released', async (t) => {
  const firstSeed = testSeed() * 1000
  const problems: string[] = []
  for (let i = 0; i < GRAPHS / 4; i += 1) {
    problems.push(...(await executeBounded(drawGraph(firstSeed + i))))
  }
  t.same(problems.slice(0, 5), [], `${problems.length} problems`)
})
