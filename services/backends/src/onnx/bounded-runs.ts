import { readFile, stat } from 'node:fs/promises'
import { ONNX_FIELDS } from '@tutti/builtins'
import { WIRE_BYTES, WireReader } from '@tutti/formats'

const { GRAPH, MODEL, NODE } = ONNX_FIELDS

/** Largest file whose runs take a few microseconds: a multiply-add of each weight of a larger file takes longer. */
const MAX_FILE_BYTES = 4 * 1024 * 1024
/** The domains of the ONNX standard. Operators of others, such as a search by beams, may do anything. */
const STANDARD_DOMAINS = new Set(['', 'ai.onnx', 'ai.onnx.ml'])
/** Operators for which the computation, or how much they write, depends on the values of their inputs. */
const BY_VALUE = new Set(
  `AffineGrid BlackmanWindow CenterCropPad ConstantOfShape DFT Expand HammingWindow
   HannWindow If Loop MaxUnpool MelWeightMatrix NonMaxSuppression OneHot Pad Range
   RegexFullMatch Resize STFT Scan SequenceMap StringSplit Tile Upsample`.split(/\s+/),
)

/**
 * Checks whether the size of a model's inputs, and not their values, bounds the time of its runs. Then a client cannot make a
 * short run long. Always false for files above 4 MiB, which are not read.
 *
 * @param model - the path of a .onnx file, or its bytes.
 * @throws ServeError MALFORMED_MESSAGE if the file is no ModelProto; Error if it cannot be read.
 */
export async function hasBoundedRuns(model: string | Uint8Array): Promise<boolean> {
  const isFile = typeof model === 'string'
  if ((isFile ? (await stat(model)).size : model.byteLength) > MAX_FILE_BYTES) return false
  const reader = new WireReader(isFile ? await readFile(model) : model)
  let isBounded = true
  readFields(reader, {
    [MODEL.GRAPH]: () => (isBounded &&= readGraph(reader)),
    // Operators of the model's own making.
    [MODEL.FUNCTIONS]: () => {
      reader.view()
      isBounded = false
    },
  })
  return isBounded
}

function readGraph(reader: WireReader): boolean {
  let isBounded = true
  const outer = reader.enter()
  readFields(reader, { [GRAPH.NODE]: () => (isBounded = isBoundedNode(reader) && isBounded) })
  reader.leave(outer)
  return isBounded
}

function isBoundedNode(reader: WireReader): boolean {
  let [type, domain] = ['', '']
  const outer = reader.enter()
  readFields(reader, {
    [NODE.OP_TYPE]: () => (type = reader.view().toString()),
    [NODE.DOMAIN]: () => (domain = reader.view().toString()),
  })
  reader.leave(outer)
  return STANDARD_DOMAINS.has(domain) && !BY_VALUE.has(type)
}

function readFields(reader: WireReader, fields: Readonly<Record<number, () => unknown>>): void {
  while (reader.hasMore()) {
    const tag = reader.tag()
    const read = (tag & 7) === WIRE_BYTES ? fields[tag >>> 3] : undefined
    if (read === undefined) reader.skip(tag)
    else read()
  }
}
