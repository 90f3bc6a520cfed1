import type { ConfigDatatype } from '@tutti/tensor'
import type { ENUMS, MESSAGES } from './model-config-table.ts'

/*
 * Triton's ModelConfig (model_config.proto), with the proto's field names. Scalars, lists and maps are always present
 * (proto3 defaults); messages and members of a oneof are absent unless they were given. 64-bit integers are numbers within
 * +-(2^53 - 1): the parser refuses what lies outside.
 */

type Messages = typeof MESSAGES
type Enums = typeof ENUMS

/** One value of a type that the table names. */
type ValueOf<T> = T extends keyof Messages
  ? MessageOf<T>
  : T extends keyof Enums
    ? keyof Enums[T]
    : T extends 'DataType'
      ? DataType
      : T extends 'string' | 'bool'
        ? { string: string; bool: boolean }[T]
        : number

type FieldOf<T> = T extends `repeated ${infer Element}`
  ? readonly ValueOf<Element>[]
  : T extends `map<${string},${infer Value}>`
    ? Readonly<Record<string, ValueOf<Value>>>
    : T extends `${infer Member} of ${string}`
      ? ValueOf<Member>
      : ValueOf<T>

type HasPresence<T> = T extends keyof Messages | `${string} of ${string}` ? true : false

type MessageOf<M extends keyof Messages> = {
  readonly [F in keyof Messages[M] as HasPresence<Messages[M][F]> extends true
    ? never
    : F]: FieldOf<Messages[M][F]>
} & {
  readonly [F in keyof Messages[M] as HasPresence<Messages[M][F]> extends true
    ? F
    : never]?: FieldOf<Messages[M][F]>
}

export type DataType = 'TYPE_INVALID' | ConfigDatatype
export type ModelInput = MessageOf<'ModelInput'>
export type ModelOutput = MessageOf<'ModelOutput'>
export type BatchInput = MessageOf<'BatchInput'>
export type BatchOutput = MessageOf<'BatchOutput'>
export type InstanceGroup = MessageOf<'ModelInstanceGroup'>
export type QueuePolicy = MessageOf<'ModelQueuePolicy'>
export type DynamicBatching = MessageOf<'ModelDynamicBatching'>
export type SequenceBatching = MessageOf<'ModelSequenceBatching'>
export type SequenceState = MessageOf<'ModelSequenceBatching.State'>
export type EnsembleStep = MessageOf<'ModelEnsembling.Step'>
export type ModelWarmup = MessageOf<'ModelWarmup'>
export type WarmupInput = MessageOf<'ModelWarmup.Input'>
export type ModelOptimization = MessageOf<'ModelOptimizationPolicy'>
export type ModelConfig = MessageOf<'ModelConfig'>
