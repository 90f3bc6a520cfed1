export { interpretEnsemble } from './interpret-ensemble.ts'
export { manifestPlan } from './manifest-plan.ts'
export { type Dice, dice, randomEnsemble } from './random-ensemble.ts'
