import {
  type ModelConfig,
  parseJsonConfig,
  parseModelConfig,
  printModelConfig,
} from '@tutti/model-config'

/** Converts a model's written configuration, empty if the model has none, to the one that is used. Pure. */
export type ConfigOverride = (config: ModelConfig) => ModelConfig

/** Overrides by the name of the model. */
export type ConfigOverrides = ReadonlyMap<string, ConfigOverride>

interface ConfigText {
  readonly name: string
  readonly text: string | undefined
  /** Path for messages. */
  readonly path: string
}

/**
 * Applies an override to the text of a configuration, as if config.pbtxt had it: everything that reads, checks or digests the
 * text sees the override.
 *
 * @param given - `text` is undefined without a config.pbtxt; `name` is used if the text names no model.
 * @returns `text` unchanged without an override, or if it does not parse: its next reader reports the fault with line and column.
 * @throws ServeError of the override.
 */
export function overrideConfig(
  given: ConfigText,
  override: ConfigOverride | undefined,
): string | undefined {
  const { name, text, path } = given
  if (override === undefined) return text
  const config = parse(text, path)
  if (config === undefined) return text
  return printModelConfig(override({ ...config, name: config.name || name }))
}

function parse(text: string | undefined, path: string): ModelConfig | undefined {
  if (text === undefined) return parseJsonConfig({})
  try {
    return parseModelConfig(text, path)
  } catch {
    return undefined
  }
}
