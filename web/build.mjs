// Makes the page: one folder that the server gives out as it lies there, and beside it the licences of what is in it.
//
//   node build.mjs [--watch] [--out FOLDER]
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { context, build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const given = process.argv.slice(2);
const out = given.includes('--out')
    ? resolve(given[given.indexOf('--out') + 1])
    : join(here, '..', 'st_common', 'server', 'page_files');

// Coast and borders, from Natural Earth: the page asks for the finer file, a report has the smaller one in it.
const WORLD = { package: 'world-atlas', page: 'countries-50m.json', report: 'countries-110m.json' };
const worldFile = (name) => join(here, 'node_modules', WORLD.package, name);

const options = {
    absWorkingDir: here,
    entryPoints: {
        page: 'src/main.tsx',
        worker: 'maplibre-gl/dist/maplibre-gl-worker.mjs',
    },
    outdir: out,
    bundle: true,
    splitting: true, // what the map and its worker share is there once
    format: 'esm',
    target: ['es2022'],
    minify: !given.includes('--watch'),
    metafile: true,
    legalComments: 'none', // they stand in licences.txt, whole
    logLevel: 'warning',
    chunkNames: 'shared-[hash]',
    define: { 'process.env.NODE_ENV': '"production"' },
};

// The folder of the package that a bundled file belongs to, below node_modules.
function packageOf(path) {
    const parts = path.split('node_modules/').at(-1).split('/');
    return path.includes('node_modules/') ? parts.slice(0, parts[0].startsWith('@') ? 2 : 1).join('/') : null;
}

function licenceOf(name) {
    const folder = join(here, 'node_modules', name);
    const about = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const file = readdirSync(folder).find((one) => /^(licen[cs]e|copying)/i.test(one));
    const text = file === undefined ? '' : readFileSync(join(folder, file), 'utf8').trim();
    if (!about.license && text === '') throw new Error(`${name} has no licence`);
    return `${name} ${about.version} (${about.license ?? 'see below'})\n\n${text}\n`;
}

function writeBeside(metafile) {
    const names = new Set(Object.keys(metafile.inputs).map(packageOf).filter(Boolean));
    const licences = [...names, WORLD.package].sort().map(licenceOf);
    writeFileSync(join(out, 'licences.txt'), licences.join(`\n${'-'.repeat(80)}\n\n`));
    for (const name of ['index.html', 'icon.svg']) copyFileSync(join(here, 'src', name), join(out, name));
    copyFileSync(worldFile(WORLD.page), join(out, 'world.json'));
}

// The page as one file: what scripts, styles and the worker of the map are stands in it. `fairway streams report` puts the answers
// in; the browser keeps such a page from asking anybody for anything.
async function writeReport() {
    const whole = { ...options, splitting: false, minify: true, write: false, metafile: false };
    const [page, worker] = await Promise.all([
        build({ ...whole, entryPoints: ['src/main.tsx'], format: 'iife' }),
        build({ ...whole, entryPoints: [options.entryPoints.worker], format: 'esm' }),
    ]);
    const part = (files, end) => files.find((one) => one.path.endsWith(end)).text.replaceAll('</script', '<\\/script');
    const parts = {
        LICENCES: readFileSync(join(out, 'licences.txt'), 'utf8').replaceAll('</script', '<\\/script'),
        STYLE: part(page.outputFiles, '.css'),
        ICON: readFileSync(join(here, 'src', 'icon.svg'), 'utf8'),
        WORLD: readFileSync(worldFile(WORLD.report), 'utf8').trim().replaceAll('<', '\\u003c'),
        WORKER: part(worker.outputFiles, 'js'),
        SCRIPT: part(page.outputFiles, '.js'),
    };
    const template = readFileSync(join(here, 'src', 'report.html'), 'utf8');
    const text = template.replace(/\/\*(STYLE|ICON|LICENCES|WORLD|WORKER|SCRIPT)\*\//g, (_, name) => parts[name]);
    writeFileSync(join(out, 'report.html'), text);
}

async function main() {
    if (existsSync(out)) rmSync(out, { recursive: true });
    mkdirSync(out, { recursive: true });
    if (given.includes('--watch')) {
        const beside = {
            name: 'beside',
            setup: (one) => one.onEnd((done) => done.metafile && writeBeside(done.metafile)),
        };
        await (await context({ ...options, plugins: [beside] })).watch();
        return;
    }
    const { metafile } = await build(options);
    writeBeside(metafile);
    await writeReport();
    writeFileSync(join(here, 'node_modules', '.bundle.json'), JSON.stringify(metafile)); // for whoever asks what is large
}

await main();
