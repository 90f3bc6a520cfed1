import { nearestName } from '@tutti/errors'
import { type Doubts, NO_DOUBTS } from '../check/doubts.ts'
import { hintOf, type Problem } from '../check/problem.ts'
import type { Words } from '../check/words.ts'
import type { Graph } from '../graph.ts'

/**
 * Finds the names of a config.pbtxt that are no tensors.
 *
 * @returns also the tensors that they may mean.
 */
export function findUnknownTensors(
  inputs: readonly { readonly name: string }[],
  graph: Graph,
  words: Words,
): { readonly problems: readonly Problem[]; readonly doubts: Doubts } {
  const known = new Set(inputs.map(({ name }) => name))
  for (const { outputs } of graph.steps) for (const { tensor } of outputs) known.add(tensor)
  const meant = new Set<string>()
  const problems: Problem[] = []
  const report = (path: string, message: string): void => {
    problems.push({ reason: 'UnknownTensor', path, message })
  }
  const unknown = (name: string, path: string): void => {
    const near = nearestName(name, known)
    if (near !== undefined) meant.add(near)
    report(path, `no step makes '${name}', and it is no input${hintOf(name, known)}`)
  }
  for (const [step, one] of graph.steps.entries()) {
    for (const { name: port, from } of one.inputs) {
      if (from.kind !== 'unknown') continue
      const path = words.tensor({ step, side: 'input', name: port })
      if (!known.has(port)) {
        unknown(from.name, path)
        continue
      }
      meant.add(port)
      const swapped = `the key is the model's input and the value the tensor that feeds it; want { key: "${from.name}" value: "${port}" }`
      report(path, `no ensemble tensor '${from.name}', but '${port}' is one: ${swapped}`)
    }
  }
  for (const [i, { from }] of graph.outputs.entries()) {
    if (from.kind === 'unknown') unknown(from.name, `output[${i}].name`)
  }
  return { problems, doubts: { ...NO_DOUBTS, tensors: meant } }
}
