import type { TensorPart, TransferCredit } from '@tutti/protocol'
import type { Lent } from '@tutti/tensor'
import { splitTensors } from '../transfers/split-tensors.ts'
import type { MessagingContext } from './call.ts'

/** Tensors that go to a member with one message. */
export interface TensorsToSend {
  readonly to: string
  readonly retain: Lent['retain']
  readonly tensors: readonly Uint8Array[]
  /** Bytes of transfers that the member takes before it grants credit. */
  readonly unasked: number
  /** Called whenever a piece of a transfer is handed out. */
  readonly progressed: (now: number) => void
}

/** The tensors that go with one message: small ones in it, the others as transfers, which are kept until they are dropped. */
export class SentTensors {
  /** Parts of the message: the bytes of small tensors, the transfer numbers of the others. */
  readonly parts: readonly TensorPart[]
  readonly #to: string
  readonly #outgoingTransfers: MessagingContext['outgoingTransfers']
  readonly #transfers: number[] = []
  /** Transfers that are not wholly sent. */
  readonly #unsent = new Set<number>()

  constructor(
    {
      outgoingTransfers,
      inlineLimits,
    }: Pick<MessagingContext, 'outgoingTransfers' | 'inlineLimits'>,
    { to, tensors, unasked, retain, progressed }: TensorsToSend,
  ) {
    this.#to = to
    this.#outgoingTransfers = outgoingTransfers
    this.parts = splitTensors(tensors, inlineLimits(), unasked, (bytes, isUnasked) => {
      const onProgress = (now: number, isWhollySent: boolean): void => {
        if (isWhollySent) this.#unsent.delete(transfer)
        progressed(now)
      }
      const transfer = outgoingTransfers.open({ to, bytes, retain, isUnasked, onProgress })
      this.#transfers.push(transfer)
      this.#unsent.add(transfer)
      return transfer
    })
  }

  get hasTransfers(): boolean {
    return this.#transfers.length > 0
  }

  /** False as long as the receiver cannot have all of them. */
  get areSent(): boolean {
    return this.#unsent.size === 0
  }

  /** Takes credits for these transfers; credits for others change nothing. @returns true if more may be sent. */
  credit(credits: readonly TransferCredit[]): boolean {
    const ours = credits.filter(({ transfer }) => this.#transfers.includes(transfer))
    return this.#outgoingTransfers.credit(this.#to, ours)
  }

  /** Sends one of these transfers again from `offset` on, once; the number of another transfer changes nothing. */
  resend(transfer: number, offset: number): void {
    if (this.#transfers.includes(transfer))
      this.#outgoingTransfers.resend(this.#to, transfer, offset)
  }

  drop(): void {
    for (const transfer of this.#transfers) this.#outgoingTransfers.drop(transfer)
  }
}
