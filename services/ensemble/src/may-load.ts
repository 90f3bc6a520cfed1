import type { LoadableModels } from './step-contract.ts'

/** True if a step takes a load of this model; that it has one is not said. */
export function mayLoad({ names, isOpen, awaited }: LoadableModels, name: string): boolean {
  return isOpen || names.includes(name) || awaited.includes(name)
}
