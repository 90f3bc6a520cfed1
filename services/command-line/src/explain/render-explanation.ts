import { printable } from '@tutti/chassis'
import { formatShape } from '@tutti/tensor'
import type { ExplainedStep, ExplainedTensor, Explanation } from './explanation.ts'

/** Renders an explanation as text for people, with a line end at its end. */
export function renderExplanation(o: Explanation): string {
  const executed = o.steps.filter((step) => step.executes)
  const idle = o.steps.filter((step) => !step.executes)
  const answers = o.decoupled ? ', any number of answers to a request' : ''
  return [
    `${printable(o.ensemble)}: ${o.steps.length} ${o.steps.length === 1 ? 'step' : 'steps'}${answers}`,
    ...renderPorts(o),
    ...executed.toSorted((a, b) => a.stage - b.stage).flatMap((step) => ['', ...renderStep(step)]),
    '',
    `longest chain: ${o.longestChain.map(printable).join(' -> ')}`,
    ...(idle.length === 0 ? [] : [renderIdle(o, idle)]),
    '',
  ].join('\n')
}

function renderPorts({ inputs, outputs, requestedOutputs }: Explanation): readonly string[] {
  const wanted = new Set(requestedOutputs)
  return [
    ...inputs.map((tensor) => ['input', tensor, ''] as const),
    ...outputs.map(
      (one) => ['output', one, wanted.has(one.name) ? '' : ', not asked for'] as const,
    ),
  ].map(([what, tensor, rest]) => `  ${what.padEnd(6)} ${renderTensor(tensor)}${rest}`)
}

function renderStep(step: ExplainedStep): readonly string[] {
  const { stage, name, model, version, reads, makes, dependsOn, call, decoupled } = step
  const of = version === -1 ? '' : ` version ${version}`
  const notes = [
    ...(decoupled ? ['decoupled'] : []),
    ...(dependsOn.length === 0 ? [] : [`after ${dependsOn.map(printable).join(', ')}`]),
    ...call.map(printable),
  ]
  return [
    [`${stage}. ${printable(name)}: runs ${printable(model)}${of}`, ...notes].join(', '),
    ...reads.map((tensor) => `     ${printable(tensor.port)} <- ${renderTensor(tensor)}`),
    ...makes.map((tensor) => `     ${printable(tensor.port)} -> ${renderTensor(tensor)}`),
  ]
}

function renderTensor({ name, datatype, shape }: ExplainedTensor): string {
  return `${printable(name)} ${datatype} ${formatShape(shape)}`
}

function renderIdle({ requestedOutputs }: Explanation, idle: readonly ExplainedStep[]): string {
  const names = idle.map(({ name }) => printable(name)).join(', ')
  return `not executed for ${requestedOutputs.map(printable).join(', ')}: ${names}`
}
