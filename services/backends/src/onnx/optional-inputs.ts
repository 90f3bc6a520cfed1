import { WIRE_BYTES, WireReader } from '@tutti/tensor'
import { GRAPH, MODEL, TENSOR, VALUE_INFO } from './model-proto.ts'

/** A field number that GraphProto reserves: the runtime skips what has it. */
const RESERVED = 4
/** The field in which a field of the graph has its name. */
const NAMES: Readonly<Record<number, number>> = {
  [GRAPH.INITIALIZER]: TENSOR.NAME,
  [GRAPH.INPUT]: VALUE_INFO.NAME,
}

function nameIn(message: Uint8Array, field: number): string {
  const reader = new WireReader(message)
  while (reader.hasMore()) {
    const tag = reader.tag()
    if (tag === field * 8 + WIRE_BYTES) return reader.view().toString()
    reader.skip(tag)
  }
  return ''
}

type Renumber = (field: number, isOptional: boolean) => number

function renumberGraph(reader: WireReader, names: ReadonlySet<string>, to: Renumber): void {
  const outer = reader.enter()
  while (reader.hasMore()) {
    const at = reader.position
    const tag = reader.tag()
    const field = tag >>> 3
    // All that matters here has a tag of one byte, so that another number fits in its place.
    if (reader.position !== at + 1 || (tag & 7) !== WIRE_BYTES) reader.skip(tag)
    else {
      const [value, name] = [reader.view(), NAMES[field]]
      const isOptional = name !== undefined && names.has(nameIn(value, name))
      reader.bytes[at] = to(field, isOptional) * 8 + WIRE_BYTES
    }
  }
  reader.leave(outer)
}

/** A copy of a model whose graph's fields have other numbers. No length changes, so nothing is moved. */
function renumber(model: Uint8Array, names: ReadonlySet<string>, to: Renumber) {
  const copy = new Uint8Array(model)
  const reader = new WireReader(copy)
  while (reader.hasMore()) {
    const tag = reader.tag()
    if (tag === MODEL.GRAPH * 8 + WIRE_BYTES) renumberGraph(reader, names, to)
    else reader.skip(tag)
  }
  return copy
}

/**
 * A copy of a model in which the inputs `names` have no initializer, so that the binding takes them: it neither lists
 * inputs that have one nor uses what they are fed.
 *
 * @param model - a whole ModelProto.
 * @throws ServeError MALFORMED_MESSAGE if it is not one.
 */
export function openInputs(model: Uint8Array, names: ReadonlySet<string>): Uint8Array<ArrayBuffer> {
  return renumber(model, names, (field, isOptional) =>
    isOptional && field === GRAPH.INITIALIZER ? RESERVED : field,
  )
}

/** A copy of a model that only outputs the initializers of the inputs `names`, each by its name. */
export function toDefaults(model: Uint8Array, names: ReadonlySet<string>): Uint8Array<ArrayBuffer> {
  return renumber(model, names, (field, isOptional) => {
    if (!isOptional) return RESERVED
    return field === GRAPH.INPUT ? GRAPH.OUTPUT : field
  })
}
