import {
  type ModelConfig,
  parseJsonConfig,
  parseModelConfig,
  printModelConfig,
} from '@tutti/model-config'

/** Changes a configuration as it was written; gets the empty one where a model has none. Pure. */
export type ConfigOverride = (config: ModelConfig) => ModelConfig

/** By the name of the model. */
export type ConfigOverrides = ReadonlyMap<string, ConfigOverride>

interface ConfigText {
  readonly name: string
  readonly text: string | undefined
  /** For messages. */
  readonly path: string
}

/**
 * The text of a configuration with an override applied, as if it had been in config.pbtxt: all that reads, checks or digests it
 * takes the override with it.
 *
 * @param given - `text` is absent if there is no config.pbtxt; `name` is for one that names no model.
 * @returns `text` itself without an override, and also if it does not parse: the next reader says so, with line and column.
 * @throws ServeError, the override's own.
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
