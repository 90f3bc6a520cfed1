import { DATATYPES } from '@tutti/tensor'

const TEXT = { type: 'string' } as const
const BOOLEAN = { type: 'boolean' } as const
const COUNT = { type: 'integer', minimum: 0 } as const

function listOf(items: object) {
  return { type: 'array', items } as const
}

function object(properties: Readonly<Record<string, object>>, required: readonly string[] = []) {
  return { type: 'object', properties, ...(required.length > 0 && { required }) } as const
}

const ANYTHING = { type: 'object', additionalProperties: true } as const
const PARAMETERS = {
  type: 'object',
  additionalProperties: { type: ['string', 'number', 'boolean'] },
} as const
const TENSOR = {
  name: TEXT,
  datatype: { type: 'string', enum: Object.keys(DATATYPES) },
  shape: listOf(COUNT),
  parameters: PARAMETERS,
  data: listOf({}),
} as const
const DECLARED = listOf(
  object({ name: TEXT, datatype: TEXT, shape: listOf({ type: 'integer', minimum: -1 }) }),
)
/** A switch, or null for no change. */
const SWITCH = { type: ['boolean', 'null'] } as const
/** A number as text, or null to return to what is inherited. */
const SETTING = { type: ['string', 'null'] } as const

/** JSON schemas of bodies in the OpenAPI document, by name. */
export const OPENAPI_SCHEMAS = {
  Error: object({ error: TEXT }, ['error']),
  Object: ANYTHING,
  ServerMetadata: object({ name: TEXT, version: TEXT, extensions: listOf(TEXT) }, ['name']),
  Metadata: object(
    { name: TEXT, versions: listOf(TEXT), platform: TEXT, inputs: DECLARED, outputs: DECLARED },
    ['name', 'inputs', 'outputs'],
  ),
  InferRequest: object(
    {
      id: TEXT,
      parameters: PARAMETERS,
      inputs: listOf(object(TENSOR, ['name', 'datatype', 'shape'])),
      outputs: listOf(object({ name: TEXT, parameters: PARAMETERS }, ['name'])),
    },
    ['inputs'],
  ),
  InferResponse: object(
    {
      id: TEXT,
      model_name: TEXT,
      model_version: TEXT,
      parameters: PARAMETERS,
      outputs: listOf(object(TENSOR, ['name', 'datatype', 'shape'])),
    },
    ['model_name', 'outputs'],
  ),
  GenerateRequest: {
    ...object({ id: TEXT, parameters: ANYTHING }),
    description:
      'Members called as the inputs of the model, scalars or flat lists; others are parameters.',
    additionalProperties: true,
  },
  GenerateResponse: {
    ...object({ id: TEXT, model_name: TEXT, model_version: TEXT, error: TEXT }),
    description: 'Outputs and parameters beside these, an output of one element as a scalar.',
    additionalProperties: true,
  },
  Statistics: object({ model_stats: listOf(ANYTHING) }, ['model_stats']),
  IndexRequest: object({ ready: BOOLEAN }),
  Index: listOf(object({ name: TEXT, version: TEXT, state: TEXT, reason: TEXT }, ['name'])),
  LoadRequest: object({
    parameters: {
      ...object({ config: TEXT }),
      description: 'file:PATH members hold files in base64.',
      additionalProperties: TEXT,
    },
  }),
  UnloadRequest: object({ parameters: object({ unload_dependents: BOOLEAN }) }),
  RegionRequest: object({ key: TEXT, offset: COUNT, byte_size: COUNT }, ['key', 'byte_size']),
  Regions: listOf(object({ name: TEXT, key: TEXT, offset: COUNT, byte_size: COUNT }, ['name'])),
  LogSettings: object({
    log_file: { ...TEXT, readOnly: true },
    log_info: SWITCH,
    log_warning: SWITCH,
    log_error: SWITCH,
    log_verbose_level: { type: ['integer', 'null'], minimum: 0 },
    log_format: { type: ['string', 'null'], enum: ['json', 'default', 'ISO8601', null] },
  }),
  TraceSettings: object({
    trace_level: { type: ['array', 'null'], items: { enum: ['OFF', 'TIMESTAMPS', 'TENSORS'] } },
    trace_rate: SETTING,
    trace_count: SETTING,
    log_frequency: SETTING,
    trace_file: { ...TEXT, readOnly: true },
    trace_mode: { ...TEXT, readOnly: true },
  }),
} as const
