import { TYPE_NUMBERS } from '@tutti/builtins'
import { monotonicNs } from '@tutti/chassis'
import { bug, ServeError } from '@tutti/errors'
import { DATATYPES, type Datatype, type NamedTensor } from '@tutti/tensor'
import type { BufferPool } from './buffer-pool.ts'
import { LENT_BYTES, LentOutputs } from './lent-outputs.ts'
import { type Address, type RunArguments, readStatus } from './ort-library.ts'
import { createRunBlock, type NativeName, type RunBlock, toNativeNames } from './run-block.ts'
import { refuseData, refuseDims, refuseIndex, refuseType, runtimeError } from './run-errors.ts'
import type { RunInput, RunReply, SessionPort, SessionRun } from './session-contract.ts'
import type { OpenedRun, SessionParts } from './session-parts.ts'
import { createTexts, readTexts } from './text-tensors.ts'

/**
 * Inputs up to this size are copied into fresh memory where they cannot be used in place, larger ones into memory of the pool.
 */
const SMALL_BYTES = 65_536
/** Runs with inputs of so many bytes are rare, and leave no memory in the arena. */
const LARGE_BYTES = 16 * 2 ** 20
/** An entry of a run's configuration, and its value for the arena of the CPU. @see onnxruntime_run_options_config_keys.h */
const [SHRINKAGE, CPU_ARENA] = ['memory.enable_memory_arena_shrinkage', 'cpu:0']
const MAX_RANK = 64
/**
 * Copied: kernels check places in a tensor, and count a mask, before they use them, and a Python process may write to its memory
 * meanwhile.
 */
const MUST_NOT_CHANGE: ReadonlySet<Datatype> = new Set<Datatype>(['BOOL', 'INT32', 'INT64'])
/** Memory that stands for empty data, because the runtime wants an address. */
const NO_DATA = new Uint8Array(8)

/**
 * Session of ONNX Runtime, which any number of threads may run at the same time. It checks all data of requests, because a wrong
 * size or address would end the process.
 */
export class OrtSession {
  /** Address of the OrtSession. */
  readonly address: Address
  readonly #parts: SessionParts
  readonly #inputNames: readonly NativeName[]
  readonly #outputNames: readonly NativeName[]
  /** Offset of the outputs' values in a block. */
  readonly #firstOutput: number
  readonly #blocks: RunBlock[] = []
  readonly #out = new BigUint64Array(1)
  readonly #at = new BigUint64Array(1)
  readonly #rank = new BigUint64Array(1)
  readonly #dims = new BigInt64Array(MAX_RANK)
  readonly #lentOutputs: LentOutputs
  readonly pace = new RunPace()

  constructor(o: SessionParts) {
    this.#parts = o
    this.address = o.session
    this.#inputNames = toNativeNames(o.library, o.inputs)
    this.#outputNames = toNativeNames(o.library, o.outputs)
    this.#lentOutputs = new LentOutputs(o.library)
    this.#firstOutput = 2 * o.inputs.length + o.outputs.length
  }

  /**
   * Prepares a run. A tensor whose bytes are in one aligned part is used in place; others are copied.
   *
   * @throws ServeError INVALID_TENSOR_DATA if bytes and shape do not fit; ENGINE_FAILED.
   */
  open(run: SessionRun): OpenedRun {
    const beginNs = monotonicNs()
    const { inputs, outputs } = run
    const capacity = this.#inputNames.length
    if (inputs.length > capacity || outputs.length > this.#outputNames.length) {
      throw bug('a run has more tensors than its model')
    }
    const block = this.#blocks.pop() ?? createRunBlock(this.#parts, this.#check)
    outputs.forEach((output, i) => {
      block.addresses[2 * capacity + i] = this.#outputNames[output]?.address ?? 0n
      block.addresses[this.#firstOutput + i] = 0n
    })
    const counts = { inputBytes: 0, inputNs: 0, isTerminated: false }
    const opened: OpenedRun = { run, block, beginNs, copies: [], lent: [], ...counts }
    let made = 0
    try {
      for (const tensor of inputs) {
        block.addresses[made] = this.#inputNames[tensor.index]?.address ?? 0n
        block.addresses[capacity + made] = this.#createInput(tensor, opened.copies)
        made += 1
        for (const { data } of tensor.parts) opened.inputBytes += data.byteLength
      }
      if (this.#parts.hasArena) this.#shrinkAfter(block, opened.inputBytes >= LARGE_BYTES)
    } catch (error) {
      this.#free(opened, made)
      throw error
    }
    opened.inputNs = monotonicNs() - beginNs
    return opened
  }

  /** Lets the runtime free memory after a run of large inputs: a single such run would else hold gigabytes for ever. */
  #shrinkAfter(block: RunBlock, isShrinking: boolean): void {
    if (block.isShrinking === isShrinking) return
    const { api } = this.#parts.library
    this.#check(api.addRunConfigEntry(block.options, SHRINKAGE, isShrinking ? CPU_ARENA : ''))
    block.isShrinking = isShrinking
  }

  /** Tells whether a run is expected to be so short that it may block the calling thread. */
  isShort({ inputBytes }: OpenedRun): boolean {
    return this.#parts.mayRunHere && this.pace.isShort(inputBytes)
  }

  /** Makes the arguments with which a run thread calls the runtime. */
  argumentsOf({ run, block: { address, options } }: OpenedRun): RunArguments {
    const inputs = this.#inputNames.length * BigUint64Array.BYTES_PER_ELEMENT
    const values = address + 2 * inputs
    const outputValues = values + this.#outputNames.length * BigUint64Array.BYTES_PER_ELEMENT
    const [ins, outs] = [run.inputs.length, run.outputs.length]
    return [this.address, options, address, address + inputs, ins, values, outs, outputValues]
  }

  /** Runs on the calling thread, and answers the run before it returns. */
  runHere(opened: OpenedRun): void {
    const beginNs = monotonicNs()
    const status = this.#parts.library.api.run(...this.argumentsOf(opened))
    this.finish(opened, status, beginNs, monotonicNs())
  }

  /** Asks a run to end with an error, whether it has begun or not. */
  terminate(opened: OpenedRun): void {
    opened.isTerminated = true
    const { api } = this.#parts.library
    this.#check(api.setTerminate(opened.block.options))
  }

  /**
   * Answers a run and frees its memory.
   *
   * @param status - of the runtime, or the error if there is none.
   * @param beginNs - monotonic time when the run began; `endNs` when it ended. Both are in nanoseconds.
   */
  finish(opened: OpenedRun, status: number | ServeError, beginNs: number, endNs: number): void {
    const readNs = monotonicNs()
    let result: RunReply | ServeError
    try {
      if (status instanceof ServeError) throw status
      this.pace.add(opened, endNs - beginNs)
      this.#check(status)
      const { run, block, inputNs } = opened
      const outputs = run.outputs.map((index, i) => {
        return this.#readOutput(index, block.addresses[this.#firstOutput + i] ?? 0n, opened)
      })
      result = {
        outputs,
        loan: opened.lent.length > 0 ? this.#lentOutputs.lend(opened.lent) : undefined,
        waitNs: Math.max(0, beginNs - opened.beginNs - inputNs),
        inputNs,
        inferNs: endNs - beginNs,
        outputNs: monotonicNs() - readNs,
      }
    } catch (error) {
      opened.lent.length = 0
      result = ServeError.from(error)
    }
    if (opened.isTerminated) this.#parts.library.api.unsetTerminate(opened.block.options)
    this.#free(opened, opened.run.inputs.length)
    opened.run.done(result)
  }

  /** Frees the memory kept for runs. No run may be open. */
  dispose(): void {
    for (const { options } of this.#blocks.splice(0))
      this.#parts.library.api.releaseRunOptions(options)
  }

  /** @param inputs - that were made. */
  #free({ run, block, copies, lent }: OpenedRun, inputs: number): void {
    const { api } = this.#parts.library
    const [firstInput, firstOutput] = [this.#inputNames.length, this.#firstOutput]
    for (let i = 0; i < inputs; i += 1) api.releaseValue(block.addresses[firstInput + i] ?? 0n)
    for (let i = 0; i < run.outputs.length; i += 1) {
      const value = block.addresses[firstOutput + i] ?? 0n
      if (value !== 0n && !lent.includes(value)) api.releaseValue(value)
    }
    for (const copy of copies) if (copy.byteLength > SMALL_BYTES) this.#parts.pool.give(copy)
    this.#blocks.push(block)
  }

  /** @returns the address of an OrtValue. */
  #createInput(tensor: RunInput, copies: ArrayBuffer[]): bigint {
    const { library, inputs } = this.#parts
    const { dims } = tensor
    const port = inputs[tensor.index] ?? refuseIndex()
    const count = checkDims(port, dims)
    const { itemSize } = DATATYPES[port.datatype]
    if (itemSize === null) return createTexts(library, { port, tensor, count }, this.#check)
    for (let i = 0; i < dims.length; i += 1) this.#dims[i] = BigInt(dims[i] ?? 0)
    const mustCopy = MUST_NOT_CHANGE.has(port.datatype)
    const data =
      (mustCopy ? undefined : inPlace(tensor, itemSize)) ?? copyOf(tensor, copies, this.#parts.pool)
    const size = data.byteLength
    if (size !== count * itemSize) refuseData(port, dims, `${size} bytes`, count * itemSize)
    const place = size === 0 ? NO_DATA : data
    const [memory, type] = [library.cpuMemory, TYPE_NUMBERS.get(port.datatype) ?? 0]
    const { createTensorOver } = library.api
    this.#check(createTensorOver(memory, place, size, this.#dims, dims.length, type, this.#out))
    return this.#out[0] ?? 0n
  }

  /** Reads an output that the runtime has made, lent or copied. */
  #readOutput(index: number, value: bigint, { run, block, lent }: OpenedRun): NamedTensor {
    const port = this.#parts.outputs[index] ?? refuseIndex()
    const { name, datatype } = port
    const shape = this.#readShape(port, value)
    const { api } = this.#parts.library
    const { itemSize } = DATATYPES[datatype]
    const count = shape.reduce((product, extent) => product * extent, 1)
    if (itemSize === null) {
      const data = readTexts(this.#parts.library, value, count, this.#check)
      return { name, datatype, shape, data }
    }
    const size = count * itemSize
    if (size > 0) this.#check(api.getTensorData(value, this.#out))
    const address = this.#out[0] ?? 0n
    const first = this.#inputNames.length
    const inputs = block.addresses.subarray(first, first + run.inputs.length)
    if (size >= LENT_BYTES && !this.#lentOutputs.isInput(address, inputs)) {
      lent.push(value)
      return { name, datatype, shape, data: this.#lentOutputs.view(address, size) }
    }
    const data = Buffer.allocUnsafe(size)
    if (size > 0) api.copyFrom(data, address, size)
    return { name, datatype, shape, data }
  }

  #readShape(port: SessionPort, value: bigint): number[] {
    const { api } = this.#parts.library
    // The runtime writes 4 bytes of it.
    this.#out[0] = 0n
    this.#check(api.getTypeAndShape(value, this.#out, this.#at, this.#rank))
    const type = Number(this.#out[0])
    if (type !== TYPE_NUMBERS.get(port.datatype)) refuseType(port, type)
    const rank = Number(this.#rank[0])
    const dims = rank > MAX_RANK ? new BigInt64Array(rank) : this.#dims
    if (rank > 0) api.copyFrom(dims, this.#at[0] ?? 0n, rank * BigInt64Array.BYTES_PER_ELEMENT)
    const shape: number[] = []
    for (let i = 0; i < rank; i += 1) shape.push(Number(dims[i]))
    return shape
  }

  /** @throws ServeError ENGINE_FAILED with the runtime's code and text. */
  readonly #check = (status: number): void => {
    if (status !== 0) throw runtimeError(readStatus(this.#parts.library.api, status))
  }
}

/** @returns how many elements it has. @throws ServeError INVALID_TENSOR_DATA */
function checkDims(port: SessionPort, dims: readonly number[]): number {
  let count = 1
  for (const extent of dims) {
    if (!Number.isSafeInteger(extent) || extent < 0) refuseDims(port, dims, MAX_RANK)
    count *= extent
  }
  if (dims.length > MAX_RANK) refuseDims(port, dims, MAX_RANK)
  return count
}

/** Returns the bytes of a tensor in one piece if its elements are aligned: kernels may use instructions that need alignment. */
function inPlace({ parts: [first, ...others] }: RunInput, itemSize: number) {
  const isAligned =
    others.length === 0 && first !== undefined && first.data.byteOffset % itemSize === 0
  return isAligned ? first.data : undefined
}

function copyOf({ parts }: RunInput, copies: ArrayBuffer[], pool: BufferPool): Uint8Array {
  let size = 0
  for (const { data } of parts) size += data.byteLength
  const memory = size <= SMALL_BYTES ? new ArrayBuffer(size) : pool.take(size)
  copies.push(memory)
  const copy = new Uint8Array(memory, 0, size)
  let offset = 0
  for (const { data } of parts) {
    copy.set(data, offset)
    offset += data.byteLength
  }
  return copy
}

/** Time up to which every run is short: the way to a thread and back costs as much. */
const SHORT_NS = 20_000
/**
 * Factor from the time in which a run's inputs were put in place to the time up to which the run is short. Everything is slow
 * where requests are so rare that caches are cold.
 */
const SHORT_INPUTS = 3
/** A model whose runs take up to this time on a thread that has slept is tried here. */
const TRIAL_NS = 200_000
/**
 * Time of a run above which the next ones no longer run here. Other work on the processor makes short runs longer, but seldom by
 * so much.
 */
const LONG_NS = 500_000
/** Number of runs here of which one must be short. */
const WINDOW_RUNS = 8
/** Runs on a thread before the first trial. After one that failed they are eight times as many, up to the longest wait. */
const TRIAL_RUNS = 4
const LONGEST_WAIT_RUNS = 4096
/** Least time of a run that is worth ending early: a shorter run is over before a caller's leaving would be noticed. */
const TERMINABLE_NS = 1_000_000

/** Decides from the times of a session's earlier runs whether the next run should block the calling thread. */
export class RunPace {
  /** True if the last run took 1 ms or more, and before the first run. */
  mayBeLong = true
  #isHere = false
  #runs = 0
  #hasShortRun = false
  #waitRuns = TRIAL_RUNS
  /** The largest inputs of runs that were not slow had so many bytes. */
  #bytes = 0

  /** Tells whether a run is expected to be short: earlier runs were, with inputs of at least half the size. */
  isShort(inputBytes: number): boolean {
    return this.#isHere && inputBytes <= 2 * this.#bytes
  }

  /**
   * Adds the times of a run, in nanoseconds.
   *
   * @param inputNs - time to put the inputs in place.
   * @param ns - time of the run itself.
   */
  add({ inputBytes, inputNs }: Pick<OpenedRun, 'inputBytes' | 'inputNs'>, ns: number): void {
    this.mayBeLong = ns >= TERMINABLE_NS
    if (ns > LONG_NS) {
      this.#bytes = 0
      return this.#begin(false)
    }
    if (ns > TRIAL_NS) return
    this.#bytes = Math.max(this.#bytes, inputBytes)
    this.#hasShortRun ||= ns <= SHORT_NS || ns <= SHORT_INPUTS * inputNs
    this.#runs += 1
    if (this.#runs >= (this.#isHere ? WINDOW_RUNS : this.#waitRuns)) this.#decide()
  }

  #decide(): void {
    const isHere = !this.#isHere || this.#hasShortRun
    if (!isHere) this.#waitRuns = Math.min(LONGEST_WAIT_RUNS, 8 * this.#waitRuns)
    else if (this.#isHere) this.#waitRuns = TRIAL_RUNS
    this.#begin(isHere)
  }

  #begin(isHere: boolean): void {
    this.#isHere = isHere
    this.#runs = 0
    this.#hasShortRun = false
  }
}
