import type { ModelConfig } from '@tutti/model-config'
import type { ModelConfig as ModelConfigMessage } from './gen/inference/ModelConfig.ts'

/**
 * A configuration as the object that proto-loader encodes; a view, not a copy. Field names, enum texts and the absence of
 * unset oneof members are already those of the .proto (a test compares both), so only the types differ: the loader takes
 * 64-bit integers as numbers, text or Long, and mutable arrays.
 */
export function modelConfigToProto(config: ModelConfig): ModelConfigMessage {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- equal but for readonly and the wider integer types
  return config as unknown as ModelConfigMessage
}
