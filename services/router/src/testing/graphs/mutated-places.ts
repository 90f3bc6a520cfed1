import type { EnsembleSketch, StepSketch } from './sketch.ts'
import type { SpecDraft, StepDraftSpec } from './spec-draft.ts'
import { toDraft } from './spec-draft.ts'

/** A field of a spec that names a tensor. */
export interface ReferencePlace {
  readonly path: string
  readonly ref: string
  readonly replace: (spec: SpecDraft, ref: string) => void
}

/** A step as it is drawn and as it is written. */
export interface StepPlace {
  readonly index: number
  readonly step: StepSketch
  readonly written: StepDraftSpec
  readonly path: string
}

/** Lists the steps of an ensemble. */
export function stepPlaces(ensemble: EnsembleSketch): readonly StepPlace[] {
  const spec = toDraft(ensemble)
  return ensemble.steps.flatMap((step, index) => {
    const written = spec.steps[index]
    return written === undefined
      ? []
      : [{ index, step, written, path: `steps[${index}](${step.name})` }]
  })
}

/** Returns a step of a spec that is changed. */
export function stepOf({ steps }: SpecDraft, index: number): StepDraftSpec {
  const step = steps[index]
  if (step === undefined) throw new Error(`no step ${index}`)
  return step
}

/** Lists the fields of an ensemble that name tensors. */
export function referencePlaces(ensemble: EnsembleSketch): readonly ReferencePlace[] {
  return [...stepPlaces(ensemble).flatMap(inStep), ...inOutputs(ensemble)]
}

function inStep({ index, written, path }: StepPlace): readonly ReferencePlace[] {
  const of = (spec: SpecDraft): StepDraftSpec => stepOf(spec, index)
  const { inputMap = {}, firstOf = {}, forEach, loop, when } = written
  return [
    ...Object.entries(inputMap).map(([input, ref]) => ({
      path: `${path}.inputMap[${input}]`,
      ref,
      replace: (spec: SpecDraft, other: string) =>
        void Object.assign(of(spec).inputMap ?? {}, { [input]: other }),
    })),
    ...Object.entries(firstOf).flatMap(([input, refs]) =>
      refs.map((ref, i) => ({
        path: `${path}.firstOf[${input}]`,
        ref,
        replace: (spec: SpecDraft, other: string) =>
          void of(spec).firstOf?.[input]?.splice(i, 1, other),
      })),
    ),
    ...Object.entries(forEach?.items ?? {}).map(([input, ref]) => ({
      path: `${path}.forEach.items[${input}]`,
      ref,
      replace: (spec: SpecDraft, other: string) =>
        void Object.assign(of(spec).forEach?.items ?? {}, { [input]: other }),
    })),
    ...(forEach?.count === undefined ? [] : [forEach.count]).map((ref) => ({
      path: `${path}.forEach.count`,
      ref,
      replace: (spec: SpecDraft, other: string) =>
        void Object.assign(of(spec).forEach ?? {}, { count: other }),
    })),
    ...inConditions({ when, until: loop?.until, index, path }),
  ]
}

function inConditions(o: {
  readonly when: string | undefined
  readonly until: string | undefined
  readonly index: number
  readonly path: string
}): readonly ReferencePlace[] {
  const { when = '', until = '', index, path } = o
  return [
    ...readIn(when).map((ref) => ({
      path: `${path}.when`,
      ref,
      replace: (spec: SpecDraft, other: string) => {
        const step = stepOf(spec, index)
        step.when = swap(step.when, ref, other)
      },
    })),
    ...readIn(until).map((ref) => ({
      path: `${path}.loop.until`,
      ref,
      replace: (spec: SpecDraft, other: string) => {
        const { loop } = stepOf(spec, index)
        if (loop !== undefined) loop.until = swap(loop.until, ref, other)
      },
    })),
  ]
}

function swap(text: string | undefined, ref: string, other: string): string {
  return (text ?? '').replaceAll(`tensors["${ref}"]`, `tensors["${other}"]`)
}

function readIn(condition: string): readonly string[] {
  const found = condition.matchAll(/tensors\["([^"]+)"\]/g)
  return [...new Set([...found].flatMap(([, ref]) => ref ?? []))]
}

function inOutputs(ensemble: EnsembleSketch): readonly ReferencePlace[] {
  return ensemble.outputs.flatMap(({ from }, index) =>
    from.map((ref, i) => ({
      path: `outputs[${index}].${from.length === 1 ? 'from' : 'firstOf'}`,
      ref,
      replace: (spec: SpecDraft, other: string) => {
        const output = spec.outputs[index]
        if (output?.firstOf === undefined) Object.assign(output ?? {}, { from: other })
        else output.firstOf.splice(i, 1, other)
      },
    })),
  )
}
