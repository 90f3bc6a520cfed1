import type { GraphSketch, StepSketch } from './sketch.ts'

/** The constructs of graphs, and whether a step has one. */
const OF_STEPS: Readonly<Record<string, (step: StepSketch) => boolean>> = {
  when: ({ when }) => when !== undefined,
  'firstOf of an input': ({ inputs }) =>
    inputs.some(({ from }) => !('datatype' in from) && from.length > 1),
  constants: ({ inputs }) => inputs.some(({ from }) => 'datatype' in from),
  parameters: ({ parameters }) => parameters !== undefined,
  dependsOn: ({ after }) => after.length > 0,
  'forEach, Stack': ({ forEach }) => forEach?.gather === 'Stack',
  'forEach, Concat': ({ forEach }) => forEach?.gather === 'Concat',
  count: ({ forEach }) => forEach?.count !== undefined,
  onItemError: ({ forEach }) => forEach?.itemDefault !== undefined,
  'batches of items': ({ forEach, callee }) =>
    forEach !== undefined && callee.kind === 'model' && callee.maxBatchSize > 0,
  'an ensemble for each item': ({ forEach, callee }) =>
    forEach !== undefined && callee.kind === 'ensemble',
  loop: ({ loop }) => loop !== undefined,
  until: ({ loop }) => loop?.until !== undefined,
  'a loop of an ensemble': ({ loop, callee }) => loop !== undefined && callee.kind === 'ensemble',
  timeout: ({ timeoutMs }) => timeoutMs !== undefined,
  retry: ({ retry }) => retry !== undefined,
  'retry of an ensemble': ({ retry, callee }) => retry !== undefined && callee.kind === 'ensemble',
  hedge: ({ hedgeMs }) => hedgeMs !== undefined,
  fallback: ({ onError }) => onError !== undefined && 'fallback' in onError,
  'a fallback for each item': ({ onError, forEach }) =>
    forEach !== undefined && onError !== undefined && 'fallback' in onError,
  'a fallback in a loop': ({ onError, loop }) =>
    loop !== undefined && onError !== undefined && 'fallback' in onError,
  'default of a step': ({ onError }) => onError !== undefined && 'values' in onError,
  'a nested ensemble': ({ callee }) => callee.kind === 'ensemble',
  'a stream': ({ callee }) => callee.isDecoupled,
}

/** Lists the constructs that a graph has. */
export function constructsOf({ ensembles }: GraphSketch): readonly string[] {
  const steps = ensembles.flatMap((one) => one.steps)
  const found = Object.entries(OF_STEPS).flatMap(([name, has]) => (steps.some(has) ? name : []))
  const hasDefault = ensembles.some(({ inputs }) => inputs.some((one) => one.default !== undefined))
  const outputs = ensembles.flatMap((one) => one.outputs)
  return [
    ...found,
    ...(hasDefault ? ['default of an input'] : []),
    ...(outputs.some(({ optional }) => optional) ? ['optional outputs'] : []),
    ...(outputs.some(({ from }) => from.length > 1) ? ['firstOf of an output'] : []),
    ...(ensembles.some(({ timeoutMs }) => timeoutMs !== undefined)
      ? ['timeout of an ensemble']
      : []),
  ]
}

/** The names of all constructs. */
export const CONSTRUCTS: readonly string[] = [
  ...Object.keys(OF_STEPS),
  'default of an input',
  'optional outputs',
  'firstOf of an output',
  'timeout of an ensemble',
]
