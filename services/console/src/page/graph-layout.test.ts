import { array, assert, nat, property } from 'fast-check'
import t from 'tap'
import type { Graph } from '../api/model-detail.ts'
import { placeGraph, toPath } from './graph-layout.ts'

const tensor = (name: string) => ({ name, datatype: 'FP32', shape: [4], isOptional: false })
const SIGNATURE = { inputs: [tensor('x')], outputs: [tensor('y')] }

/** Each step reads the tensors of some before it; the last one makes `y`. */
function graphOf(reads: readonly (readonly number[])[]): Graph {
  const steps = reads.map((from, i) => ({
    name: `s${i}`,
    model: 'm',
    version: -1,
    state: 'ready' as const,
    call: [],
    inputs: (i === 0 ? [-1] : from.map((n) => (n % (i + 1)) - 1)).map((n, at) => ({
      name: `i${at}`,
      tensor: n < 0 ? 'x' : `t${n}`,
    })),
    outputs: [
      { name: 'o', tensor: `t${i}` },
      ...(i === reads.length - 1 ? [{ name: 'p', tensor: 'y' }] : []),
    ],
  }))
  return { steps, tensors: [] }
}

const reads = array(array(nat(50), { minLength: 1, maxLength: 3 }), {
  minLength: 1,
  maxLength: 40,
})

await t.test(
  'steps stand below what they read, within the picture, and none over another',
  async () => {
    assert(
      property(reads, (written) => {
        const graph = graphOf(written)
        const { nodes, edges, width, height } = placeGraph(graph, SIGNATURE)
        const at = new Map(nodes.map((node) => [node.id, node]))
        const isInside = nodes.every(
          ({ x, y, width: w, height: h }) => x >= 0 && y >= 0 && x + w <= width && y + h <= height,
        )
        const isOrdered = edges.every(
          ({ from, to }) => (at.get(from)?.y ?? 0) < (at.get(to)?.y ?? 0),
        )
        const isApart = nodes.every((a, i) =>
          nodes
            .slice(i + 1)
            .every(
              (b) =>
                a.x + a.width <= b.x ||
                b.x + b.width <= a.x ||
                a.y + a.height <= b.y ||
                b.y + b.height <= a.y,
            ),
        )
        return isInside && isOrdered && isApart && edges.every((edge) => edge.points.length >= 2)
      }),
      { numRuns: 60 },
    )
  },
)

await t.test(
  'a tensor that several steps read has an edge to each, and a tensor without a producer has none',
  async (t) => {
    const graph = graphOf([[0], [1], [1]])
    t.equal(placeGraph(graph, SIGNATURE).edges.filter((edge) => edge.tensor === 't0').length, 2)
    const [first] = graph.steps
    const lost = {
      ...graph,
      steps: first === undefined ? [] : [{ ...first, inputs: [{ name: 'i', tensor: 'gone' }] }],
    }
    t.same(placeGraph(lost, SIGNATURE).edges, [])
  },
)

await t.test('a path goes through its ends', async (t) => {
  t.equal(toPath([]), '')
  t.match(
    toPath([
      { x: 0, y: 0 },
      { x: 5, y: 5 },
      { x: 10, y: 0 },
    ]),
    /^M0\.0,0\.0Q.*L10\.0,0\.0$/,
  )
})
