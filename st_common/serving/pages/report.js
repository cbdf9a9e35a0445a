const map=document.querySelector('.map');
for(const row of document.querySelectorAll('tr[data-q]')){
 row.addEventListener('mouseenter',()=>{map.classList.add('one');
  for(const e of map.querySelectorAll('.'+row.dataset.q))e.classList.add('on')});
 row.addEventListener('mouseleave',()=>{map.classList.remove('one');
  for(const e of map.querySelectorAll('.on'))e.classList.remove('on')});}
