import type { Lent } from '@tutti/tensor'

/** Lends on what was lent to an ensemble: a reader that retains it retains it from its owner. */
export function lendOn(tensors: readonly { readonly retain?: Lent['retain'] | undefined }[]): Lent {
  const owners = new Set(tensors.flatMap(({ retain }) => retain ?? []))
  const retain = (): (() => void) => {
    const giveBacks = [...owners].map((one) => one())
    return () => {
      for (const giveBack of giveBacks) giveBack()
    }
  }
  return { retain }
}
