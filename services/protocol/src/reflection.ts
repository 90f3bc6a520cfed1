import { loadSync, type MethodDefinition, type PackageDefinition } from '@grpc/proto-loader'
import { PROTO_OPTIONS } from './services.ts'

/** The files of the services that a server has; `inference` is in two. */
const PROTO_FILES = [
  'grpc_service.proto',
  'health.proto',
  'reflection.proto',
  'reflection_v1alpha.proto',
]
const PACKAGES = ['inference', 'grpc.health.v1', 'grpc.reflection.v1', 'grpc.reflection.v1alpha']
const REFLECTION = [
  'grpc.reflection.v1.ServerReflection',
  'grpc.reflection.v1alpha.ServerReflection',
]

/** A google.protobuf.FileDescriptorProto, as far as we change it. */
interface FileProto {
  readonly name: string
  readonly package: string
  readonly messageType: readonly MessageProto[]
  readonly enumType: readonly Named[]
  readonly service: readonly (Named & { readonly method: readonly MethodProto[] })[]
}

interface Named {
  name: string
}

interface MessageProto extends Named {
  readonly field: readonly { typeName?: string }[]
  readonly nestedType: readonly MessageProto[]
  readonly enumType: readonly Named[]
  readonly options?: { readonly mapEntry?: boolean }
}

interface MethodProto extends Named {
  inputType: string
  outputType: string
}

/** Descriptions that the reflection service gives of all services of a server, itself included. */
export interface Reflection {
  /** Full names of the services. */
  readonly services: readonly string[]
  /** Encoded FileDescriptorProto by file name. There is one file for each package, and it imports no other. */
  readonly files: ReadonlyMap<string, Buffer>
  /** File name by the full name of a service, method, message or enum. */
  readonly fileOf: ReadonlyMap<string, string>
  /** Methods ServerReflectionInfo, of v1 and of v1alpha. */
  readonly methods: readonly MethodDefinition<object, object>[]
}

/** Reads the .proto files of all services and describes them as protoc would. It takes some 20 ms. */
export function readReflection(): Reflection {
  const loaded = loadSync(PROTO_FILES, PROTO_OPTIONS)
  const codec = fileCodec()
  const fileOf = new Map<string, string>()
  const files = new Map<string, Buffer>()
  for (const bytes of fileProtosOf(loaded)) {
    const file = codec.decode(bytes)
    if (!PACKAGES.includes(file.package)) continue
    for (const name of completeNames(file)) fileOf.set(name, file.name)
    files.set(file.name, codec.encode(file))
  }
  const services = Object.keys(loaded).filter((name) => isService(loaded, name) && fileOf.has(name))
  const methods = REFLECTION.flatMap((name) => Object.values(loaded[name] ?? {}))
  return { services, files, fileOf, methods }
}

function isService(loaded: PackageDefinition, name: string): boolean {
  return !('format' in (loaded[name] ?? {}))
}

/** Returns the files of the loaded protos. Every type of proto-loader has the files of all. */
function fileProtosOf(loaded: PackageDefinition): readonly Buffer[] {
  const { fileDescriptorProtos } = loaded['inference.ModelInferRequest'] ?? {}
  return Array.isArray(fileDescriptorProtos) ? fileDescriptorProtos : []
}

function fileCodec() {
  const loaded = loadSync('google/protobuf/descriptor.proto', { arrays: true })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a message of the file just read
  const { deserialize, serialize } = loaded['google.protobuf.FileDescriptorProto'] as unknown as {
    deserialize: (bytes: Buffer) => FileProto
    serialize: (file: FileProto) => Buffer
  }
  return { decode: deserialize, encode: serialize }
}

/**
 * Writes what protobufjs leaves out and clients insist on: full names of types, and the names that entries of maps must have.
 *
 * @returns the full names of all that the file declares.
 */
function completeNames(file: FileProto): string[] {
  const scope = `.${file.package}`
  const names = new Set(file.enumType.map(({ name }) => `${scope}.${name}`))
  const entries = new Map<string, string>()
  const messages: (readonly [string, MessageProto])[] = []
  const visit = (outer: string, message: MessageProto): void => {
    const written = `${outer}.${message.name}`
    if (message.options?.mapEntry === true) {
      message.name = `${toCamelCase(message.name)}Entry`
      entries.set(written, `${outer}.${message.name}`)
    }
    const name = `${outer}.${message.name}`
    names.add(written)
    messages.push([name, message])
    for (const one of message.enumType) names.add(`${name}.${one.name}`)
    for (const nested of message.nestedType) visit(name, nested)
  }
  for (const message of file.messageType) visit(scope, message)
  const resolve = (from: string, type: string): string => {
    for (let at = from; at !== ''; at = at.slice(0, at.lastIndexOf('.'))) {
      const full = `${at}.${type}`
      if (names.has(full)) return entries.get(full) ?? full
    }
    return type
  }
  for (const [name, { field }] of messages) {
    for (const one of field) if (one.typeName) one.typeName = resolve(name, one.typeName)
  }
  for (const { name, method } of file.service) {
    names.add(`${scope}.${name}`)
    for (const one of method) {
      names.add(`${scope}.${name}.${one.name}`)
      one.inputType = resolve(scope, one.inputType)
      one.outputType = resolve(scope, one.outputType)
    }
  }
  return [...names].map((name) => (entries.get(name) ?? name).slice(1))
}

/** Converts a name as protoc does: `string_params` -> `StringParams`. */
function toCamelCase(name: string): string {
  return name.replace(/(?:^|_)(.?)/g, (_match, letter: string) => letter.toUpperCase())
}
