import type { OptionsOf } from '@tutti/builtins'
import { DATATYPES, type NamedTensor } from '@tutti/tensor'
import { checkOutputBytes } from '../../output-bound.ts'
import { misfit, toInt64 } from '../code-inputs.ts'
import type { Padding } from './open-tokenizer.ts'

/** Tensors that are made of the tokens. */
const OUTPUTS = 3
const FIRST_TOKENS = 256

/** The tokens of one text or pair. */
export interface TokenRow {
  readonly ids: readonly number[]
  readonly types: readonly number[]
}

/** Collects the tokens of the texts of a request, and makes tensors of them. A text of a few bytes is padded to the longest of all. */
export class TokenRows {
  readonly #count: number
  readonly #padding: Padding | undefined
  readonly #datatype: OptionsOf<'tokenize'>['datatype']
  readonly #lengths: Int32Array
  #ids = new Int32Array(FIRST_TOKENS)
  #types = new Int32Array(FIRST_TOKENS)
  #rows = 0
  #tokens = 0
  #longest = 0

  /** @param o.count - texts that will be added. @throws ServeError MESSAGE_TOO_LARGE if the padding alone is over the bound of outputs. */
  constructor(o: {
    readonly count: number
    readonly padding: Padding | undefined
    readonly datatype: OptionsOf<'tokenize'>['datatype']
  }) {
    this.#count = o.count
    this.#padding = o.padding
    this.#datatype = o.datatype
    this.#checkBytes()
    this.#lengths = new Int32Array(o.count)
  }

  /** @throws ServeError MESSAGE_TOO_LARGE as soon as all texts, as wide as this one, are over the bound of outputs. */
  add({ ids, types }: TokenRow): void {
    this.#longest = Math.max(this.#longest, ids.length)
    this.#checkBytes()
    const end = this.#tokens + ids.length
    if (end > this.#ids.length) {
      this.#ids = grown(this.#ids, end)
      this.#types = grown(this.#types, end)
    }
    this.#ids.set(ids, this.#tokens)
    this.#types.set(types, this.#tokens)
    this.#tokens = end
    this.#lengths[this.#rows] = ids.length
    this.#rows += 1
  }

  /** @throws ServeError INVALID_REQUEST for texts of several lengths without padding, or of more tokens than a fixed one has. */
  toTensors(): readonly NamedTensor[] {
    const width = this.#width()
    this.#checkLengths(width)
    const { pad_id: id = 0, pad_type_id: type = 0 } = this.#padding ?? {}
    return [
      this.#tensor('input_ids', { width, values: this.#ids, pad: id }),
      this.#tensor('attention_mask', { width, values: undefined, pad: 0 }),
      this.#tensor('token_type_ids', { width, values: this.#types, pad: type }),
    ]
  }

  /** The number of tokens to which all are padded. */
  #width(): number {
    if (this.#padding === undefined) return this.#longest
    const { strategy, pad_to_multiple_of: multiple } = this.#padding
    const least = strategy === 'BatchLongest' ? this.#longest : strategy.Fixed
    return multiple === null || multiple === 0 ? least : Math.ceil(least / multiple) * multiple
  }

  #checkBytes(): void {
    const bytes = OUTPUTS * this.#count * this.#width() * DATATYPES[this.#datatype].itemSize
    const isKnown = this.#rows === this.#count
    checkOutputBytes({ builtin: 'tokenize', bytes, ...(!isKnown && { bound: 'at least' }) })
  }

  #checkLengths(width: number): void {
    if (this.#padding === undefined) {
      const other = this.#lengths.find((length) => length !== width)
      if (other === undefined) return
      throw misfit(
        'texts',
        `texts of ${other} and of ${width} tokens`,
        'the same number of tokens, since padding is none',
      )
    }
    if (this.#longest <= width) return
    const got = `a text of ${this.#longest} tokens`
    throw misfit('texts', got, `at most ${width}, to which all are padded`)
  }

  /** @param o.values - of all tokens; undefined for 1 each. */
  #tensor(
    name: string,
    o: { readonly width: number; readonly values: Int32Array | undefined; readonly pad: number },
  ): NamedTensor {
    const all = new Int32Array(this.#count * o.width).fill(o.pad)
    let from = 0
    this.#lengths.forEach((length, row) => {
      const left = this.#padding?.direction === 'Left' ? o.width - length : 0
      const at = row * o.width + left
      if (o.values === undefined) all.fill(1, at, at + length)
      else all.set(o.values.subarray(from, from + length), at)
      from += length
    })
    const data = this.#datatype === 'INT32' ? new Uint8Array(all.buffer) : toInt64(all)
    return { name, datatype: this.#datatype, shape: [this.#count, o.width], data }
  }
}

/** Copies numbers into memory for so many, or for twice as many as before. */
function grown(values: Int32Array<ArrayBuffer>, length: number): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(Math.max(length, 2 * values.length))
  larger.set(values)
  return larger
}
