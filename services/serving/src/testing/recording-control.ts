import type { LoadParameters, ModelControl } from '../backend/inference-backend.ts'

/** A control that records its loads and unloads, and ends them as `outcome` says. */
export class RecordingControl implements ModelControl {
  readonly loads: (readonly [string, LoadParameters])[] = []
  readonly unloads: (readonly [string, boolean])[] = []
  /** The outcome that loads and unloads wait for, or fail with. */
  outcome: () => Promise<void> = async () => {}

  load(name: string, parameters: LoadParameters): Promise<void> {
    this.loads.push([name, parameters])
    return this.outcome()
  }

  unload(name: string, o: { readonly unloadDependents: boolean }): Promise<void> {
    this.unloads.push([name, o.unloadDependents])
    return this.outcome()
  }
}
