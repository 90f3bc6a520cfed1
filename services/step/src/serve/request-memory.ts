import { LentMemory } from '@tutti/backends'
import type { ProcessBase } from '@tutti/server'
import type { TensorMemory } from '@tutti/tensor'

/**
 * Opens memory for the large tensors of clients' requests, which engines read in place. `opened` closes it. Undefined where
 * memory cannot be shared.
 */
export function openRequestMemory(
  maxBytes: number,
  { opened }: Pick<ProcessBase, 'opened'>,
): TensorMemory | undefined {
  const memory = LentMemory.open(maxBytes)
  // Not waited for: what is lent may have no end.
  opened.defer(() => void memory?.close())
  return memory
}
