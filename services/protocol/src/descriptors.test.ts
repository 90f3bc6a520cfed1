// needs: python
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { env } from 'node:process'
import { fileURLToPath } from 'node:url'
import { DESCRIPTOR } from '@tutti/model-config'
import protobuf from 'protobufjs'
import t from 'tap'
import { readReflection } from './reflection.ts'
import { PROTO_DIRECTORY } from './services.ts'

const { Enum, MapField, Service, Type } = protobuf

/** Python with `tritonclient[all]`. */
const PYTHON = env['TUTTI_TEST_PYTHON']

function loadProto(name: string): protobuf.Root {
  const root = new protobuf.Root()
  root.resolvePath = (_origin, target) => join(PROTO_DIRECTORY, target)
  root.loadSync(name, { keepCase: true })
  root.resolveAll()
  return root
}

const nameOf = (object: protobuf.ReflectionObject) => object.fullName.slice(1)

function describeField(field: protobuf.Field): string {
  field.resolve()
  const type = field.resolvedType === null ? field.type : nameOf(field.resolvedType)
  const kind = field instanceof MapField ? `map<${field.keyType},${type}>` : type
  const repeated = field.repeated ? 'repeated ' : ''
  const oneof = field.partOf === null ? '' : ` of ${field.partOf.name}`
  return `${nameOf(field)} = ${field.id}: ${repeated}${kind}${oneof}`
}

function describeMethod(method: protobuf.Method): string {
  method.resolve()
  const side = (isStream: boolean | undefined, type: protobuf.Type | null) =>
    `${isStream === true ? 'stream ' : ''}${type === null ? '?' : nameOf(type)}`
  const request = side(method.requestStream, method.resolvedRequestType)
  return `${nameOf(method)}: ${request} -> ${side(method.responseStream, method.resolvedResponseType)}`
}

/** One line per message, field, enum value and method: what the wire and clients can tell apart. */
function describe(object: protobuf.ReflectionObject): string[] {
  if (object instanceof Enum) {
    return Object.entries(object.values).map(([name, id]) => `${nameOf(object)}.${name} = ${id}`)
  }
  if (object instanceof Service) return object.methodsArray.map(describeMethod)
  const nested = object instanceof protobuf.Namespace ? object.nestedArray.flatMap(describe) : []
  if (!(object instanceof Type)) return nested
  return [`message ${nameOf(object)}`, ...object.fieldsArray.map(describeField), ...nested]
}

const skip = PYTHON === undefined && 'tritonclient is not installed (TUTTI_TEST_PYTHON is not set)'

/** Lines of Python's descriptors: tritonclient's, or those that protobuf makes of `files`. */
function readPython(files?: readonly Buffer[]): string[] {
  const script = fileURLToPath(new URL('tritonclient-descriptors.py', import.meta.url))
  const input = (files ?? []).map((file) => `${file.toString('base64')}\n`).join('')
  const options = { encoding: 'utf8', input } as const
  const printed = execFileSync(PYTHON ?? '', [script, ...(files ? ['served'] : [])], options)
  return printed.trim().split('\n')
}

await t.test('our descriptors are those of tritonclient, field by field', { skip }, async (t) => {
  const theirs = readPython()
  const ours = describe(loadProto('grpc_service.proto'))
  t.ok(theirs.length > 400)
  t.strictSame(ours.toSorted(byText), theirs.toSorted(byText))
})

await t.test(
  'reflection gives files that protobuf accepts and that say all of this',
  { skip },
  async (t) => {
    const { files } = readReflection()
    const ours = ['grpc_service', 'health', 'reflection', 'reflection_v1alpha'].flatMap((name) =>
      describe(loadProto(`${name}.proto`)),
    )
    t.strictSame(readPython([...files.values()]).toSorted(byText), ours.toSorted(byText))
  },
)

await t.test(
  'reflection finds what the files declare, under the names that protoc gives',
  async (t) => {
    const { services, fileOf, files } = readReflection()
    t.strictSame(services, [
      'inference.GRPCInferenceService',
      'grpc.health.v1.Health',
      'grpc.reflection.v1.ServerReflection',
      'grpc.reflection.v1alpha.ServerReflection',
    ])
    for (const symbol of [
      'inference.GRPCInferenceService.ModelInfer',
      'inference.ModelInferRequest.InferInputTensor',
      'inference.ModelInferRequest.InferInputTensor.ParametersEntry',
      'inference.ModelMetrics.MetricControl.HistogramOptions',
      'inference.DataType',
    ])
      t.equal(fileOf.get(symbol), 'inference.proto', symbol)
    t.equal(fileOf.get('google.rpc.Status'), undefined, 'of no service')
    t.ok([...fileOf.values()].every((name) => files.has(name)))
  },
)

await t.test('the health service is the one that probes speak', async (t) => {
  t.strictSame(describe(loadProto('health.proto')).toSorted(byText), [
    'grpc.health.v1.Health.Check: grpc.health.v1.HealthCheckRequest -> grpc.health.v1.HealthCheckResponse',
    'grpc.health.v1.Health.Watch: grpc.health.v1.HealthCheckRequest -> stream grpc.health.v1.HealthCheckResponse',
    'grpc.health.v1.HealthCheckRequest.service = 1: string',
    'grpc.health.v1.HealthCheckResponse.ServingStatus.NOT_SERVING = 2',
    'grpc.health.v1.HealthCheckResponse.ServingStatus.SERVICE_UNKNOWN = 3',
    'grpc.health.v1.HealthCheckResponse.ServingStatus.SERVING = 1',
    'grpc.health.v1.HealthCheckResponse.ServingStatus.UNKNOWN = 0',
    'grpc.health.v1.HealthCheckResponse.status = 1: grpc.health.v1.HealthCheckResponse.ServingStatus',
    'message grpc.health.v1.HealthCheckRequest',
    'message grpc.health.v1.HealthCheckResponse',
  ])
})

/** The same lines from the table that parses and prints config.pbtxt. */
function describeConfigTable(): string[] {
  const lines: string[] = []
  for (const { name, fields } of DESCRIPTOR.messages.values()) {
    lines.push(`message inference.${name}`)
    for (const field of fields) lines.push(`inference.${name}.${describeRow(field)}`)
  }
  for (const [name, values] of DESCRIPTOR.enums) {
    for (const [value, id] of Object.entries(values)) {
      lines.push(`inference.${name}.${value} = ${id}`)
    }
  }
  return lines
}

type Row = typeof DESCRIPTOR extends {
  messages: ReadonlyMap<string, { fields: readonly (infer F)[] }>
}
  ? F
  : never

function typeOfRow(field: Row): string {
  if (field.type === 'message') return `inference.${field.message}`
  return field.type === 'enum' ? `inference.${field.enum}` : field.type
}

function describeRow(field: Row): string {
  const type = typeOfRow(field)
  const kind = field.map === undefined ? type : `map<${field.map},${type}>`
  const repeated = field.repeated ? 'repeated ' : ''
  const oneof = field.oneof === undefined ? '' : ` of ${field.oneof}`
  return `${field.name}: ${repeated}${kind}${oneof}`
}

await t.test('the table that reads config.pbtxt is that of the .proto', async (t) => {
  // Text and JSON have no field numbers.
  const ours = describe(loadProto('model_config.proto')).map((line) =>
    line.replace(/ = \d+: /, ': '),
  )
  t.strictSame(describeConfigTable().toSorted(byText), ours.toSorted(byText))
})

function byText(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}
