import { testSeed } from '@tutti/chassis/testing'
import t from 'tap'
import { drawGraph } from '../testing/graphs/draw-graph.ts'
import { executeBounded, executeGraph } from '../testing/graphs/graph-case.ts'

t.setTimeout(0)

const ROUNDS = 1000
const GRAPHS = 1000

await t.test(`a million drawn graphs give what the interpreter computes`, async (t) => {
  const firstSeed = testSeed()
  for (let round = 0; round < ROUNDS; round += 1) {
    const problems: string[] = []
    for (let i = 0; i < GRAPHS; i += 1) {
      const graph = drawGraph(firstSeed + round * GRAPHS + i)
      problems.push(...(await executeGraph(graph)).problems)
      if (i % 10 === 0) problems.push(...(await executeBounded(graph)))
    }
    t.same(problems, [], `round ${round}`)
  }
})
