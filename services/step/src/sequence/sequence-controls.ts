import {
  type ModelConfig,
  type SequenceControl,
  type SequenceControlKind,
  sequenceControls,
} from '@tutti/model-config'
import {
  type Datatype,
  encodeBytesTensor,
  fromConfigDatatype,
  type NamedTensor,
  type RequestContext,
} from '@tutti/tensor'

type Id = RequestContext['correlationId']

/** Control inputs of one model, ready to be added to requests. */
export interface ControlTensors {
  /** Returns the control inputs of a request, in the order of the config. */
  of(context: RequestContext): readonly NamedTensor[]
  /** Control inputs of a place in a batch without a request: not ready. */
  readonly notReady: readonly NamedTensor[]
  /** The input of the correlation id, if the model has one. */
  readonly correlation: { readonly name: string; readonly datatype: Datatype } | undefined
}

/** Compiles the control inputs, tensors of one element each. All requests share them, except for the correlation id. */
export function compileControls(config: ModelConfig): ControlTensors {
  const shape = config.max_batch_size > 0 ? [1, 1] : [1]
  const controls = sequenceControls(config).map((control) => compileControl(control, shape))
  const correlation = controls.find(({ kind }) => kind === 'CONTROL_SEQUENCE_CORRID')
  return {
    of: (context) => controls.map((control) => control.tensor(context)),
    notReady: controls.map((control) => control.tensor(undefined)),
    correlation: correlation && { name: correlation.name, datatype: correlation.datatype },
  }
}

/** @param shape - of one request. */
function compileControl(control: SequenceControl, shape: readonly number[]) {
  const { name, kind } = control
  const datatype = fromConfigDatatype(control.dataType) ?? 'BOOL'
  if (kind === 'CONTROL_SEQUENCE_CORRID') {
    const tensor = (context?: RequestContext): NamedTensor => {
      return { name, datatype, shape, data: encodeId(context?.correlationId ?? 0n, datatype) }
    }
    return { name, kind, datatype, tensor }
  }
  const [no, yes] = control.falseTrue.map((value) => {
    return { name, datatype, shape, data: encodeValue(Number(value), datatype) }
  })
  if (no === undefined || yes === undefined) throw new Error(`bug: no values for ${name}`)
  const tensor = (context?: RequestContext): NamedTensor => (isTrue(kind, context) ? yes : no)
  return { name, kind, datatype, tensor }
}

function isTrue(kind: SequenceControlKind, context: RequestContext | undefined): boolean {
  if (context === undefined) return false
  if (kind === 'CONTROL_SEQUENCE_READY') return true
  return kind === 'CONTROL_SEQUENCE_START' ? context.sequenceStart : context.sequenceEnd
}

function encodeValue(value: number, datatype: Datatype): Uint8Array {
  if (datatype === 'BOOL') return Uint8Array.of(value === 0 ? 0 : 1)
  const view = new DataView(new ArrayBuffer(4))
  if (datatype === 'FP32') view.setFloat32(0, value, true)
  else view.setInt32(0, value, true)
  return new Uint8Array(view.buffer)
}

/** Encodes an id. An integer control of 32 bits gets the lower half of the id, as in Triton. */
function encodeId(id: Id, datatype: Datatype): Uint8Array {
  if (datatype === 'BYTES') {
    return encodeBytesTensor([Buffer.from(typeof id === 'string' ? id : '', 'utf8')])
  }
  const view = new DataView(new ArrayBuffer(8))
  view.setBigUint64(0, typeof id === 'string' ? 0n : BigInt.asUintN(64, id), true)
  const size = datatype === 'UINT64' || datatype === 'INT64' ? 8 : 4
  return new Uint8Array(view.buffer, 0, size)
}
