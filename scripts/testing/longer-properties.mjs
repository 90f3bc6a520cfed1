// Loaded before tests (--import): every property of fast-check runs TUTTI_PROPERTY_FACTOR times as often as its test says.
import { registerHooks } from 'node:module'

const wrapper = new URL('./longer-fast-check.mjs', import.meta.url).href

registerHooks({
  resolve(specifier, context, nextResolve) {
    if (specifier !== 'fast-check' || context.parentURL === wrapper) {
      return nextResolve(specifier, context)
    }
    return { url: wrapper, shortCircuit: true }
  },
})
