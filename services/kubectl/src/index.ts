export { KUBECTL_PROGRAM } from './kubectl-program.ts'
export { chooseRouter } from './trace/find-router.ts'
