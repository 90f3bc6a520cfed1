import { type ModelConfig, withoutDefaults } from '@tutti/model-config'
import type { ModelConfig as ModelConfigMessage } from './gen/inference/ModelConfig.ts'

/**
 * Converts a configuration to the object that proto-loader encodes, without defaults. Field names, enum texts and the absence of
 * unset oneof members are already those of the .proto (a test compares both). Only the types differ: the loader takes 64-bit
 * integers as numbers, text or Long, and mutable arrays.
 */
export function modelConfigToProto(config: ModelConfig): ModelConfigMessage {
  return withoutDefaults(config)
}
