import { ServeError } from '@tutti/errors'
import type { ModelConfig } from '@tutti/model-config'
import { fromConfigDatatype, isDatatype, type Shape } from '@tutti/tensor'
import { z } from 'zod'
import { canonicalJson } from './canonical-json.ts'
import { parseBuiltin } from './parse-builtin.ts'
import type { FeedingTensor } from './ports.ts'
import { BUILTIN_PARAMETER, toModelConfig } from './to-model-config.ts'

/** Most UTF-16 code units of a step's text, which each of its requests carries. */
export const MAX_STEP_TEXT = 65_536

const StepText = z.object({
  name: z.string(),
  options: z.record(z.string(), z.unknown()),
  inputs: z.array(z.tuple([z.string(), z.string().refine(isDatatype), z.array(z.int().min(-1))])),
})

/**
 * Writes what a request says to name the built-in that it is for: name, options, and the tensors that feed it. Equal steps have equal
 * texts.
 *
 * @param config - as `toModelConfig` has made it.
 */
export function toStepText({ parameters, input }: ModelConfig): string {
  const { name, options }: { name: unknown; options: unknown } = JSON.parse(
    parameters[BUILTIN_PARAMETER]?.string_value ?? '{}',
  )
  const inputs = input.map(({ name: port, data_type: type, dims }) => {
    return [port, fromConfigDatatype(type), dims]
  })
  return canonicalJson({ name, options, inputs })
}

/**
 * Computes the configuration of the step of a text.
 *
 * @throws ServeError MALFORMED_MESSAGE for what `toStepText` has not written; UNSUPPORTED for a step that this release does not know.
 */
export function readStepText(text: string): ModelConfig {
  const { success, data } = z.safeParse(StepText, readJson(text))
  if (!success) throw new ServeError('MALFORMED_MESSAGE', 'the text of a built-in step is none')
  const { step, faults: wrong } = parseBuiltin({ ...data.options, name: data.name })
  const inputs = data.inputs.map(([name, datatype, dims]: [string, string, Shape]) => {
    return [name, { ...(isDatatype(datatype) && { datatype }), dims }] as [string, FeedingTensor]
  })
  const modelName = `builtin:${data.name}`
  const made = step && toModelConfig(step, { modelName, inputs: new Map(inputs) })
  if (made?.config !== undefined) return made.config
  const [fault] = made?.faults ?? wrong
  const problem = fault === undefined ? '' : `, ${fault.path}: got ${fault.got}, want ${fault.want}`
  throw new ServeError('UNSUPPORTED', `built-in '${data.name}'${problem}`)
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
